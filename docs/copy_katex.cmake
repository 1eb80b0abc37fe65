# Copies what pages need to render formulas by KaTeX: FROM its folder TO that of the pages. Some are symbolic links.
file(GLOB fonts RELATIVE "${FROM}" "${FROM}/fonts/*.woff2")
file(MAKE_DIRECTORY "${TO}/fonts" "${TO}/contrib")
foreach(part katex.min.js katex.min.css contrib/auto-render.js ${fonts})
  file(COPY_FILE "${FROM}/${part}" "${TO}/${part}")
endforeach()
