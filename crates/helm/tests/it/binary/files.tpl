$s
len $s
$.Files.GetBytes $n
len ($.Files.GetBytes $n)
sha256sum $s
sha1sum $s
adler32sum $s
b64enc $s
b32enc $s
b64dec (b64enc $s)
$.Files.Lines $n | join "|"
len ($.Files.Lines $n)
range $.Files.Lines $n }}{{ . | len }},{{ end }}{{ ""
$.Files.AsConfig
$.Files.AsSecrets
($.Files.Glob $n).AsConfig
($.Files.Glob $n).AsSecrets
$.Files.Glob $n
index $.Files $n
range $k, $v := $.Files }}{{ $k }}={{ $v | toString | len }},{{ end }}{{ ""
toJson $s
toRawJson $s
toPrettyJson (dict "k" $s $s 1)
toYaml $s
toYaml (dict "k" (list $s))
toYamlPretty (dict "k" (list (trunc 5 $s)))
toYamlPretty (dict (trunc 5 $s) 1)
toYamlPretty ($s | b64enc | b64dec | trunc 3)
toToml (dict "k" (trunc 3 $s))
dict "k" $s | toJson | fromJson | toJson
fromYaml (print "k: " (trunc 1 $s)) | toJson
(fromJson (printf "{\"k\": %q}" "x")).k
fromJson (print "{\"k\":\"" (trunc 2 $s) "\"}") | toJson
fromJson $s | toJson
fromToml (print "k='" (substr 0 1 $s) "'") | keys
printf "%s" $s
printf "%q" $s
printf "%+q" $s
printf "%#q" $s
printf "%x" $s
printf "% X" $s
printf "%v" (list $s)
printf "%#v" (list $s)
~ printf "%.3s" $s
~ printf "%10.2s|" $s
~ printf "%-300s|" $s
quote $s
squote $s
print $s $s
println $s
html $s
~ js $s
urlquery $s
upper $s
lower $s
title $s
untitle $s
swapcase $s
trim $s
~ trimAll "\xff\xc3" $s
trimAll "A" $s
trimPrefix "\xff" $s
trimPrefix "\xc3" $s
trimSuffix "\x98" $s
trimSuffix "\xa9" $s
hasPrefix "\xc3" $s
hasPrefix "\xff" $s
hasSuffix "\xbc\n" $s
contains "\xc3" $s
contains "\xa9\xe2" $s
contains "é" $s
contains "\xf4" $s
replace "\xc3" "-" $s
replace "é" "\xff" $s
~ replace "" "-" (trunc 6 $s)
replace "\xa9" "\xa8" $s
split "\xc3" $s
split "\n" $s
splitList "\xa9" $s
~ splitList "" (trunc 6 $s) | toJson
splitn "\xc3" 2 $s
splitn "\xa9" 1 $s
splitList "\n" $s | toJson
trunc 1 $s
trunc -1 $s
trunc 2 $s
substr 1 3 $s
substr 0 2 $s
print (trunc 1 $s) (substr 1 -1 $s)
eq (print (trunc 1 $s) (substr 1 -1 $s)) $s
repeat 2 $s
nospace $s
initials $s
abbrev 5 $s
abbrevboth 5 8 $s
wrap 3 $s
wrapWith 2 "\xc3" $s
~ snakecase $s
~ kebabcase $s
camelcase $s
indent 2 $s
nindent 2 $s
cat $s $s
join "\xff" (list $s $s)
sortAlpha (list $s "é" "\xff" "\x80" "a" "\xf4")
list $s "é" | uniq | len
has $s (list "x" $s)
~ reverse (splitList "" (trunc 6 $s)) | join ""
regexMatch "^.$" (trunc 1 $s)
regexFind "[^\\x00-\\x7f]+" $s
~ regexFindAll "." $s -1 | len
~ regexReplaceAll "[^a-z]" $s "-"
~ regexReplaceAll "(.)" (trunc 5 $s) "<${1}>"
regexReplaceAllLiteral "[^a-zA-Z]" $s "\xff"
regexSplit "[^a-z]+" $s -1 | toJson
regexQuoteMeta $s
regexFind "\\x{FFFD}" $s
regexReplaceAll "\\pC" $s "C"
regexReplaceAll "\\pS" $s "S"
regexReplaceAll "[^\\pL\\pN]" $s "."
urlParse (print "http://h/" (urlquery $s)) | toJson
base $s
dir $s
ext $s
clean $s
index $s 0
lt $s "é"
gt $s "\xf4"
eq $s $s
ne $s "x"
default "x" $s | len
empty $s
ternary $s "x" true | len
coalesce "" $s | len
dict $s 1 | keys | first | b64enc
get (dict $s "v") $s
hasKey (dict $s 1) $s
set (dict) $s $s | toJson
dict "a" $s | values | first
pluck "a" (dict "a" $s) | first | len
deepCopy (dict "a" $s) | toJson
deepEqual (dict "a" $s) (dict "a" (print $s))
tpl "{{ . | b64enc }}" $s
tpl "{{ . }}" $s | b64enc
tpl $s .
include "echo" $s
toString ($.Files.GetBytes $n)
kindOf ($.Files.GetBytes $n)
toString (list ($.Files.GetBytes $n) | first)
toStrings (list $s) | first
atoi $s
int $s
int64 (trunc 1 $s)
float64 $s
toDecimal $s
semverCompare ">1" "2"
plural $s "x" 1
list ($.Files.GetBytes $n) | toJson
printf "%s" ($.Files.GetBytes $n)
printf "%q" ($.Files.GetBytes $n)
printf "%x" ($.Files.GetBytes $n)
printf "%d" ($.Files.GetBytes $n)
printf "%s" (index $.Files $n)
printf "%c%c" (index $s 0) 0x10ff80
duration $s
durationRound $s
dateInZone "2006\xff" 0 "UTC"
date $s 0
derivePassword 1 "long" $s "user" "example.com"
decryptAES "k" (encryptAES "k" (print $s "x"))
decryptAES $s (encryptAES $s "x")
