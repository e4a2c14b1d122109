package dashboard

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/language/display"

	"linkstream/api/links"
	"linkstream/schema/enrich"
)

// ruleWord is a value of a condition as people write it.
type ruleWord struct{ Value, Name string }

// deviceWords, osWords and browserWords are what the form offers. Fields take other names that reports have, too.
var (
	deviceWords  = []ruleWord{{"mobile", "Phones"}, {"tablet", "Tablets"}, {"desktop", "Computers"}}
	osWords      = sameWords("Android", "iOS", "Windows", "macOS", "Linux", "ChromeOS", "Harmony", "Windows Phone")
	browserWords = sameWords("Chrome", "Safari", "Firefox", "Edge", "Opera", "Samsung Browser", "Brave", "DuckDuckGo",
		"Vivaldi", "Instagram App", "Facebook App", "TikTok App", "LinkedIn App", "X App", "Google App")
)

// moreWords are other words of people, in small letters.
var moreWords = map[string]map[string]string{
	"device": {"phone": "mobile", "smartphone": "mobile", "smartphones": "mobile", "mobiles": "mobile", "cell": "mobile",
		"computer": "desktop", "desktops": "desktop", "laptop": "desktop", "laptops": "desktop", "pc": "desktop"},
	"os":      {"iphone": "iOS", "ipad": "iOS", "ipados": "iOS", "mac": "macOS", "mac os": "macOS", "os x": "macOS"},
	"browser": {"google chrome": "Chrome", "microsoft edge": "Edge", "samsung internet": "Samsung Browser"},
	"country": {"usa": "US", "america": "US", "uk": "GB", "england": "GB", "great britain": "GB", "holland": "NL",
		"the netherlands": "NL", "czech republic": "CZ", "turkey": "TR", "hong kong": "HK"},
}

func sameWords(names ...string) (words []ruleWord) {
	for _, name := range names {
		words = append(words, ruleWord{name, name})
	}
	return words
}

// countryWords and languageWords are sorted by their English names.
var (
	countryWords = sync.OnceValue(func() []ruleWord {
		return codeWords('A', func(code string) string {
			region, err := language.ParseRegion(code)
			if err != nil || !region.IsCountry() || region.Canonicalize().String() != code {
				return ""
			}
			return display.English.Regions().Name(region)
		})
	})
	languageWords = sync.OnceValue(func() []ruleWord {
		return codeWords('a', func(code string) string {
			tag, err := language.Parse(code)
			if err != nil || !enrich.KnownLanguage(code) || tag.String() != code {
				return ""
			}
			return display.English.Languages().Name(tag)
		})
	})
)

// codeWords returns the codes of two letters that have a name.
func codeWords(first byte, name func(code string) string) (words []ruleWord) {
	for i := range byte(26) {
		for j := range byte(26) {
			code := string([]byte{first + i, first + j})
			if name := name(code); name != "" {
				words = append(words, ruleWord{code, name})
			}
		}
	}
	slices.SortFunc(words, func(a, b ruleWord) int { return strings.Compare(a.Name, b.Name) })
	return words
}

// wordsOf returns what a field of a rule offers; nil if it takes any text.
func wordsOf(condition string) []ruleWord {
	switch condition {
	case "device":
		return deviceWords
	case "os":
		return osWords
	case "browser":
		return browserWords
	case "country":
		return countryWords()
	case "language":
		return languageWords()
	}
	return nil
}

// valueOf returns the value that a typed word stands for, or the word if none is known.
func valueOf(condition, typed string) string {
	small := strings.ToLower(typed)
	if value := moreWords[condition][small]; value != "" {
		return value
	}
	for _, word := range wordsOf(condition) {
		if strings.EqualFold(word.Value, typed) || strings.EqualFold(word.Name, typed) ||
			strings.EqualFold(strings.TrimSuffix(word.Name, " App"), typed) {
			return word.Value
		}
	}
	return typed
}

// valuesOf returns the values that a typed list stands for.
func valuesOf(condition, text string) (values []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if value := valueOf(condition, part); !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	return values
}

// isKnown reports whether a condition may have a value.
func isKnown(condition, value string) bool {
	switch condition {
	case "os":
		return enrich.KnownOS(value)
	case "browser":
		return enrich.KnownBrowser(value)
	case "language":
		return enrich.KnownLanguage(value)
	}
	return slices.ContainsFunc(wordsOf(condition), func(w ruleWord) bool { return w.Value == value })
}

// namesOfValues returns values as the form shows them.
func namesOfValues(condition string, values []string) string {
	names := slices.Clone(values)
	for i, value := range names {
		for _, word := range wordsOf(condition) {
			if condition != "device" && word.Value == value {
				names[i] = word.Name
			}
		}
	}
	return strings.Join(names, ", ")
}

// asPeopleSay words the problems of rules and variants for the form, each at a field that can be mended.
func asPeopleSay(p problems, b behaviour) problems {
	for _, row := range b.Rules {
		for _, input := range row.Inputs {
			condition := strings.TrimPrefix(input.Key, "if.")
			if p[input.Name] == "" || wordsOf(condition) == nil {
				continue
			}
			var unknown []string
			for _, value := range valuesOf(condition, input.Text) {
				if !isKnown(condition, value) {
					unknown = append(unknown, value)
				}
			}
			if len(unknown) > 0 {
				p[input.Name] = "Not known: " + strings.Join(unknown, ", ") +
					". Write " + strings.ToLower(input.Label) + " as in: " + input.Example + "."
			}
		}
	}
	if sum := p[links.FieldVariants]; strings.HasPrefix(sum, "Percentages ") && p["variants.0.weight"] == "" {
		delete(p, links.FieldVariants)
		p["variants.0.weight"] = sum
	}
	return p
}
