#include "command/interrupt.hpp"
#include "command/program.hpp"

int main(int argc, char** argv) {
  convladder::command::handle_interrupts();  // first, so that all threads inherit the signal mask
  return convladder::command::run_program({argv + 1, argv + argc});
}
