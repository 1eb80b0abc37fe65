# Copies llvm-cov's pages, if there are any, FROM their folder TO that of the documentation.
if(EXISTS "${FROM}")
  file(COPY "${FROM}/" DESTINATION "${TO}")
endif()
