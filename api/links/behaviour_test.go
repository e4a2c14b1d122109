package links_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"linkstream/api/links"
	"linkstream/schema"
	"linkstream/schema/testkit"
)

func TestBehaviourFields(t *testing.T) {
	f := newFixture(t, "https://sho.rt", "unsafe.example")
	rule := func(conditions string) links.Behaviour {
		return links.Behaviour{Rules: `[{"name":"a","if":` + conditions + `,"url":"https://example.com/"}]`}
	}
	variants := func(weights ...int) links.Behaviour {
		var all []string
		for i, weight := range weights {
			all = append(all, fmt.Sprintf(`{"name":"v%d","url":"https://example.com/","weight":%d}`, i, weight))
		}
		return links.Behaviour{Variants: "[" + strings.Join(all, ",") + "]"}
	}
	card := func(text string) links.Behaviour { return links.Behaviour{Card: text} }
	const device = `{"device":["mobile"]}`
	long := "https://example.com/" + strings.Repeat("x", 2000)
	for _, c := range []struct {
		given   links.Behaviour
		invalid string // fields, separated by spaces; "": valid
	}{
		{rule(device), ""},
		{rule(`{"device":["desktop","tablet"],"os":["Windows","Other"],"browser":["Edge"],` +
			`"language":["de-AT","fil"],"country":["AT","CH"]}`), ""},
		{rule(`{"query":{"a":"","b":"*"},"from":"2020-01-01T00:00:00Z"}`), ""},
		{rule(`{}`), "rules.0.if"}, {rule(`null`), "rules.0.if"}, {rule(`[]`), "rules.0.if"},
		{rule(`{"device":[]}`), "rules.0.if.device"}, {rule(`{"device":"mobile"}`), "rules.0.if.device"},
		{rule(`{"device":["bot"]}`), "rules.0.if.device"}, {rule(`{"device":["mobile",null]}`), "rules.0.if.device"},
		{rule(`{"os":["Amiga"],"browser":["Mosaic"]}`), "rules.0.if.browser rules.0.if.os"},
		{rule(`{"language":["xx"]}`), "rules.0.if.language"}, {rule(`{"language":["de-"]}`), "rules.0.if.language"},
		{rule(`{"language":["*"]}`), "rules.0.if.language"},
		{rule(`{"language":["de-1234567890-12"]}`), "rules.0.if.language"},
		{rule(`{"country":["at"]}`), "rules.0.if.country"}, {rule(`{"country":["XX"]}`), "rules.0.if.country"},
		{rule(`{"country":["AUT"]}`), "rules.0.if.country"}, {rule(`{"country":["150"]}`), "rules.0.if.country"},
		{rule(`{"query":{}}`), "rules.0.if.query"}, {rule(`{"query":{"a":1}}`), "rules.0.if.query"},
		{rule(`{"query":{"":"x"}}`), "rules.0.if.query"},
		{rule(`{"query":{"a":"","b":"","c":"","d":"","e":"","f":""}}`), "rules.0.if.query"},
		{rule(`{"from":"2030-01-01"}`), "rules.0.if.from"}, {rule(`{"until":1}`), "rules.0.if.until"},
		{rule(`{"from":"2030-01-01T00:00:00Z","until":"2030-01-01T01:00:00+01:00"}`), "rules.0.if.until"},
		{rule(`{"Device":["mobile"]}`), "rules.0.if.Device"},
		{links.Behaviour{Rules: `{}`}, "rules"}, {links.Behaviour{Rules: `[1]`}, "rules"},
		{links.Behaviour{Rules: `[null]`}, "rules.0"},
		{links.Behaviour{Rules: `[` + strings.Repeat(`{},`, 10) + `{}]`}, "rules"},
		{links.Behaviour{Rules: `x`}, "rules"},
		{links.Behaviour{Rules: `[{}]`}, "rules.0.if rules.0.name rules.0.url"},
		{links.Behaviour{Rules: `[{"name":"A b","if":` + device + `,"url":"ftp://example.com/"}]`},
			"rules.0.name rules.0.url"},
		{links.Behaviour{Rules: `[{"name":"a","if":` + device + `,"url":"https://sho.rt/x"}]`}, "rules.0.url"},
		{links.Behaviour{Rules: `[{"name":"a","if":` + device + `,"url":"https://example.com/"},{"name":"a","if":` +
			device + `,"url":"https://example.com/"}]`},
			"rules.1.name"},
		{links.Behaviour{Rules: `null`, Variants: `null`, Card: `null`}, ""},
		{variants(1, 99), ""}, {variants(50, 50), ""}, {variants(13, 13, 13, 13, 12, 12, 12, 12), ""},
		{variants(100), "variants"}, {variants(50, 49), "variants"},
		{variants(0, 100), "variants.0.weight variants.1.weight"},
		{variants(12, 11, 11, 11, 11, 11, 11, 11, 11), "variants"},
		{links.Behaviour{
			Variants: `[{"name":"a","url":"https://example.com/","weight":50.5},` +
				`{"name":"a","url":"https://example.com/","weight":"50"}]`},
			"variants variants.0.weight variants.1.name variants.1.weight"},
		{links.Behaviour{Variants: variants(50, 50).Variants,
			Rules: `[{"name":"v1","if":` + device + `,"url":"https://example.com/"}]`}, "rules.0.name"},
		{card(`{"title":"t"}`), ""}, {card(`{"title":"t","description":"d","image":null}`), ""},
		{card(`{"title":"ü","image":"https://example.com/i"}`), ""},
		{card(`{}`), "card.title"}, {card(`{"title":"","description":null}`), "card.description card.title"},
		{card(`[]`), "card"},
		{card(`{"title":"` + strings.Repeat("ü", 200) + `","description":"` + strings.Repeat("ü", 300) + `"}`), ""},
		{card(`{"title":"` + strings.Repeat("ü", 201) + `","description":"` + strings.Repeat("ü", 301) + `"}`),
			"card.description card.title"},
		{card(`{"title":"a\nb","image":"http://example.com/"}`), "card.image card.title"},
		{card(`{"title":"a","image":"https://"}`), "card.image"},
		{links.Behaviour{Rules: `[` + strings.TrimSuffix(strings.Repeat(`{"name":"NAME","if":`+device+`,"url":"`+long+`"},`,
			9), ",") + `]`}, "rules"},
		{links.Behaviour{Rules: `[{"name":"a","if":` + device + `,"url":"https://unsafe.example/"}]`}, "unsafe_url"},
		{links.Behaviour{MaxClicks: `1`}, ""}, {links.Behaviour{MaxClicks: `1000000000`}, ""},
		{links.Behaviour{MaxClicks: `0`}, "max_clicks"}, {links.Behaviour{MaxClicks: `-1`}, "max_clicks"},
		{links.Behaviour{MaxClicks: `1000000001`}, "max_clicks"}, {links.Behaviour{MaxClicks: `1.5`}, "max_clicks"},
		{links.Behaviour{MaxClicks: `"5"`}, "max_clicks"}, {links.Behaviour{MaxClicks: `[]`}, "max_clicks"},
	} {
		for i := range 9 {
			c.given.Rules = strings.Replace(c.given.Rules, "NAME", fmt.Sprint("n", i), 1)
		}
		_, err := f.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://example.com/",
			Behaviour: c.given})
		got := ""
		switch code := schema.ErrorCode(err); code {
		case schema.CodeInvalid:
			got = strings.Join(slices.Sorted(maps.Keys(invalidOf(t, err))), " ")
		case "":
		default:
			got = string(code)
		}
		if got != c.invalid {
			t.Errorf("%+v: invalid are %q, want %q", c.given, got, c.invalid)
		}
	}
}

// invalidOf returns the invalid fields of an error.
func invalidOf(t *testing.T, err error) map[string][]string {
	t.Helper()
	e, ok := err.(*schema.Error)
	if !ok {
		t.Fatal(err)
	}
	return e.Fields
}

// Concurrent edits of different parts of a behaviour all take effect, and weights keep visitors.
func TestEditBehaviour(t *testing.T) {
	f := newFixture(t, "https://sho.rt")
	link, err := f.Create(t.Context(), links.Request{AccountID: f.owner, LongURL: "https://example.com/"})
	testkit.Must(t, err)
	parts := []links.Behaviour{
		{Rules: `[{"name":"a","if":{"os":["iOS"]},"url":"https://example.com/"}]`}, {Card: `{"title":"t"}`},
		{Variants: `[{"name":"x","url":"https://example.com/x","weight":60},` +
			`{"name":"y","url":"https://example.com/y","weight":40}]`},
	}
	var edits sync.WaitGroup
	for _, part := range parts {
		edits.Go(func() {
			if _, err := f.Edit(t.Context(), link, links.Edit{Behaviour: part}); err != nil {
				t.Error(err)
			}
		})
	}
	edits.Wait()
	link, err = schema.FindLink(t.Context(), f.store, 0, link.Hash)
	testkit.Must(t, err)
	e := link.Behaviour
	if e == nil || len(e.Rules) != 1 || len(e.Variants) != 2 || e.Card == nil {
		t.Fatalf("%+v", e)
	}
	edited, err := f.Edit(t.Context(), link, links.Edit{Behaviour: links.Behaviour{
		Variants: `[{"name":"y","url":"https://example.com/y","weight":41},` +
			`{"name":"x","url":"https://example.com/x","weight":59}]`}})
	testkit.Must(t, err)
	moved := 0
	for class := range e.Shares {
		if e.Variants[e.Shares[class]-'a'].Name != edited.Behaviour.Variants[edited.Behaviour.Shares[class]-'a'].Name {
			moved++
		}
	}
	testkit.Equal(t, "classes with another variant", moved, 1)
	_, err = f.Edit(t.Context(), edited, links.Edit{
		Behaviour: links.Behaviour{Rules: `[{"name":"x","if":{"os":["iOS"]},"url":"https://example.com/"}]`}})
	testkit.WantCode(t, err, schema.CodeInvalid)
	_, err = f.Edit(t.Context(), link, links.Edit{Unchanged: true, Behaviour: parts[1]})
	testkit.WantCode(t, err, schema.CodeConflict)
}
