# Copies what pages need to render formulas by KaTeX: FROM its folder TO that of the pages.
file(COPY "${FROM}/katex.min.js" "${FROM}/katex.min.css" "${FROM}/contrib/auto-render.js" DESTINATION "${TO}")
file(GLOB fonts "${FROM}/fonts/*.woff2")
file(COPY ${fonts} DESTINATION "${TO}/fonts" FOLLOW_SYMLINK_CHAIN)
