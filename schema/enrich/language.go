package enrich

import (
	"strings"

	"linkstream/schema"
)

// languages has the codes of ISO 639-1, and of languages of browsers that have no code of two letters.
var languages = func() map[string]bool {
	const codes = `aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz
	ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu
	ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd
	ne ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st
	su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu ast ceb chr ckb dsb
	fil fur gsw haw hmn hsb kab kok lij mai mni nso sat scn szl tzm vec yue`
	set := map[string]bool{}
	for code := range strings.FieldsSeq(codes) {
		set[code] = true
	}
	return set
}()

// formerCodes are withdrawn codes that old browsers send.
var formerCodes = map[string]string{"iw": "he", "in": "id", "ji": "yi", "jw": "jv", "mo": "ro", "sh": "sr"}

// KnownLanguage reports whether the language of a range has a code of its own.
func KnownLanguage(langRange string) bool {
	code, _, _ := strings.Cut(strings.ToLower(langRange), "-")
	return languages[code]
}

// LanguageMatches reports whether what a visitor asks for is in a language range (RFC 4647, section 3.3.1): de-AT is in
// de. It does not allocate.
func LanguageMatches(asked, langRange []byte) bool {
	if len(asked) > 2 && (asked[2] == '-' || asked[2] == '_') || len(asked) == 2 {
		if code, former := formerCodes[string(lower(asked[0]))+string(lower(asked[1]))]; former {
			return LanguageMatches(append(append(make([]byte, 0, 16), code...), asked[2:]...), langRange)
		}
	}
	if len(asked) < len(langRange) || len(asked) > len(langRange) && asked[len(langRange)] != '-' &&
		asked[len(langRange)] != '_' {
		return false
	}
	for i, c := range langRange {
		if a := lower(asked[i]); a != lower(c) && (a != '_' || c != '-') {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// parseLanguage returns the language of a language range (RFC 4647), without its region and script: a name from the
// list, schema.OtherName, or "" for * and nothing.
func parseLanguage(langRange string) string {
	code, _, _ := strings.Cut(langRange, "-")
	code, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(code)), "_")
	if now, ok := formerCodes[code]; ok {
		code = now
	}
	switch {
	case code == "" || code == "*":
		return ""
	case languages[code]:
		return code
	}
	return schema.OtherName
}
