package dashboard

import (
	"regexp"
	"testing"
)

func TestSymbols(t *testing.T) {
	files, err := loadAssets()
	if err != nil {
		t.Fatal(err)
	}
	icon := regexp.MustCompile(`^<svg class=icon aria-hidden=true>` +
		`<use href=/dashboard/static/icons\.[0-9a-f]{8}\.svg#trash-2 /></svg>$`)
	if got, err := files.icon("trash-2"); err != nil || !icon.MatchString(string(got)) {
		t.Errorf("icon(trash-2) = %s, %v", got, err)
	}
	for _, name := range []string{"", "no such icon", `x"><script>`} {
		if got, err := files.icon(name); err == nil {
			t.Errorf("icon(%q) = %s, want an error", name, got)
		}
	}
	flag := regexp.MustCompile(`#DE /></svg>$`)
	if got := files.flag("de"); !flag.MatchString(string(got)) {
		t.Errorf("flag(de) = %s", got)
	}
	for _, code := range []string{"", "XX", "D", `"`} {
		if got := files.flag(code); got != "" {
			t.Errorf("flag(%q) = %s, want none", code, got)
		}
	}
}

func TestMark(t *testing.T) {
	for host, letter := range map[string]string{"www.example.com": "E", "example.com": "E", "ärzte.example": "Ä",
		"9gag.com": "9", "": "#", "<b>": "#"} {
		want := regexp.MustCompile(`^<span class="mark mark-[0-7]" aria-hidden=true>` + letter + `</span>$`)
		if got := mark(host); !want.MatchString(string(got)) {
			t.Errorf("mark(%q) = %s", host, got)
		}
	}
	if mark("www.example.com") != mark("EXAMPLE.com") {
		t.Error("a host has two marks")
	}
}
