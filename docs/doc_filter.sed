# Doxygen's input filter, for `sed -E -f`: gives the comment of `int H = 1, W = 1;  ///< extents` to H, too.
# Doxygen would give it to W alone. Lines keep their numbers. (It runs once for each file: a Python
# program's start would take more time than all the rest of the documentation.)
#
# A name a turn: `int H = 1; /**< extents */ int W = 1; ///< extents`.
:turn
s|^(.*\*/ )?([[:space:]]*)((const )?[[:alnum:]_:<>]+[*&]?( const)?)[[:space:]]+(\*?[[:alnum:]_]+[^,;()]*),[[:space:]]*([^;()]*);[[:space:]]*///<[[:space:]]*(.*)$|\1\2\3 \6; /**< \8 */ \3 \7; ///< \8|
t turn
# And all comments in the same form, else Doxygen takes the last for a part of the one before.
s|^(.*/\*\*< .*); ///< (.*)$|\1; /**< \2 */|
