# bash completion of `ladder` and `./ladder` in a clone of ConvLadder:  source <(./ladder completion) Names are those
# of folders and files, so nothing needs to be built.

_convladder_rungs() {  # ROOT FOLDER...: names of rungs below these folders
  local root=$1
  shift
  (cd -- "$root" && find "$@" -mindepth 2 -path '*/shared/*' -prune -o \( -name '*.cpp' -o -name '*.cu' \) -print 2>/dev/null) | sed 's/\.[a-z]*$//'
}

_convladder() {
  local root word=$2 before=$3 command=${COMP_WORDS[1]:-} words=""
  root=$(dirname -- "$(readlink -f -- "$(command -v -- "${COMP_WORDS[0]}")")")
  local folders=(cpu_reference cuda_naive cuda_optimized)
  COMPREPLY=()
  case $before in
    --rung | inspect | extract | --after) words=$(_convladder_rungs "$root" "${folders[@]}") ;;
    --ladder) words=$(cd -- "$root" && ls "${folders[@]}" | grep -v ':$') ;;
    --backend) words="cpu emulated gpu" ;;
    --device) words="sm_75 sm_80 sm_86 sm_89 sm_90 sm_120" ;;
    --dtype) words="fp32 tf32 fp16 bf16 fp8" ;;
    --layout) words="nchw nhwc" ;;
    --data) words="integer real" ;;
    --*) return ;;  # a number, or a file, which bash completes
    *)
      if [[ $COMP_CWORD -eq 1 ]]; then
        words=$("$root/ladder" help | sed -n 's/^  \.\/ladder \([a-z-]*\).*/\1/p')
      elif [[ $word == -* ]]; then
        words=$("$root/ladder" "$command" --help | grep -o -- '--[a-z][a-z0-9-]*')
      elif [[ $command =~ ^(compare|bench|fuzz|new-rung)$ ]]; then
        words=$(cd -- "$root" && ls "${folders[@]}" | grep -v ':$')
      elif [[ $command == check ]]; then
        words=$(sed -n '/^check_step()/,/^}/s/^    \([a-z][a-z |-]*\)).*/\1/p' "$root/ladder" | tr '|' ' ')
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word" | sort -u)
}
complete -o default -F _convladder ladder ./ladder
