package enrich_test

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/enrich"
	"linkstream/schema/testkit"
)

func TestLanguage(t *testing.T) {
	e := enrich.New(nil)
	for header, want := range map[string]string{
		"": "", "*": "", "de": "de", "de-AT": "de", "DE-at": "de", "zh-Hant-TW": "zh", "zh_CN": "zh", "fil-PH": "fil",
		"iw-IL": "he", "nb": "nb",
		"C": "Other", "x": "Other", "xx": "Other", "english": "Other", "\xff\xfe": "Other", "-": "", "de-": "de",
		"a'b":                 "Other",
		"i-am-longer-than-16": "Other", "de-i-am-longer-than-that": "de",
	} {
		click := &schema.Click{Language: []byte(header)}
		testkit.Equal(t, "language of "+header, e.Enrich(click).Language, want)
		testkit.Equal(t, "again", e.Enrich(click).Language, want)
	}
}
