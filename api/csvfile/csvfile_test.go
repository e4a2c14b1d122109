package csvfile_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"linkstream/api/csvfile"
	"linkstream/schema/testkit"
)

func TestGuard(t *testing.T) {
	for cell, want := range map[string]string{
		"a;=1": "a;'=1", "a; =1": "a; =1", "a;+1;-1;@x": "a;'+1;'-1;'@x", "a\t=1": "a\t'=1", "a|=1": "a|'=1",
		"a\n=1": "a\n'=1", "a\r=1": "a\r'=1", "a;＝1": "a;'＝1", "a;'=1": "a;''=1", `a;"=1`: `a;'"=1`, `a;""=1`: `a;'""=1`,
		`"=1`: `'"=1`, `'"'=1`: `''"'=1`, ";=": ";'=", "=;=": "'=;'=", "a,=1": "a,=1", "a-b;c": "a-b;c", "a;'b": "a;'b",
		`a;"b"=1`: `a;"b"=1`, "a;": "a;", "a;'": "a;'", "\t=": "'\t'=",
		"https://example.com/a;b=c?d=-e": "https://example.com/a;b=c?d=-e",
		"":                               "", "a": "a", "'": "'", "'a": "'a", "a=b": "a=b",
		"=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x",
		"\tx": "'\tx", "\rx": "'\rx",
		"＝1": "'＝1", "'=1": "''=1", "''-": "'''-", " =1": " =1", "''": "''",
	} {
		if got := csvfile.Guard(cell); got != want || csvfile.Unguard(got) != cell {
			t.Errorf("Guard(%q) = %q, want %q; Unguard %q", cell, got, want, csvfile.Unguard(got))
		}
	}
}

// FuzzGuard checks that no cell begins a formula wherever a spreadsheet splits it, and that Unguard restores it.
func FuzzGuard(f *testing.F) {
	for _, cell := range []string{"a;=1\t'-2\r\n\"＝3|'\"'+4", ";;'=", "\t\t="} {
		f.Add(cell)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		guarded := csvfile.Guard(cell)
		if plain := csvfile.Unguard(guarded); plain != cell {
			t.Errorf("%q is guarded as %q, and that is %q", cell, guarded, plain)
		}
		for _, part := range strings.FieldsFunc(guarded, func(r rune) bool { return strings.ContainsRune(";|\t\r\n", r) }) {
			if strings.ContainsAny(part[:1], "=+-@") {
				t.Errorf("%q is guarded as %q, where %q begins a cell", cell, guarded, part)
			}
		}
	})
}

// FuzzText checks that the text of a file has no mark in front and no line that ends with "\r" alone, is the same
// however the file is read, and that a file in UTF-8 keeps its other bytes.
func FuzzText(f *testing.F) {
	for _, file := range []string{"\ufeff\ufeffa\rb\r\nc\n\rd\r", "\xff\xfea\x00\r\x00", "\xfe\xff\x00a", "a\x00", "\x00a",
		"\r", ""} {
		f.Add([]byte(file))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		read := func(r io.Reader) string {
			text, err := csvfile.Text(r)
			testkit.Must(t, err)
			all, err := io.ReadAll(text)
			testkit.Must(t, err)
			return string(all)
		}
		text := read(bytes.NewReader(file))
		if slow := read(iotest.OneByteReader(bytes.NewReader(file))); slow != text {
			t.Errorf("%q is %q, read slowly %q", file, text, slow)
		}
		if strings.HasPrefix(text, csvfile.BOM) || strings.Count(text, "\r") != strings.Count(text, "\r\n") {
			t.Errorf("%q is %q", file, text)
		}
		if plain := string(file); utf8.ValidString(plain) && !strings.ContainsAny(plain, "\x00\ufeff\r") && text != plain {
			t.Errorf("%q is %q", file, text)
		}
	})
}
