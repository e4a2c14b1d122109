package rest_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"linkstream/api/rest"
)

// FuzzMembers compares the members of JSON text with the members that encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"long_url":"a"}`, ` { "long_url" : "a\"}" , "tags" : [ "x" , { } ] , "title":null}`,
		`{"title":1,"title":2,"TITLE":3}`,
		`{"links":[{"long_url":"\\\\"},[],[[1,2],{"a":[]}],"]",1.5e3,true , null]}`, `{"l\u0069nks":[ ]}`,
		"{\"title\":\"\xff\",\"\xff\":1}",
		`[]`, `null`, `"{}"`, `{"links":[1,2,3,4,5,6,7]}`, `{"":{"":""},"is_active":false}`,
		`{"title":"\\","links":["\\\"",""]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !json.Valid(text) {
			return
		}
		var want map[string]json.RawMessage
		isObject := json.Unmarshal(text, &want) == nil && want != nil
		for name := range want {
			if !rest.IsField(name) {
				delete(want, name)
			}
		}
		got, ok := rest.Members(text)
		if ok != isObject || ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q has members %q, %v; want %q", text, got, ok, want)
		}
		var elements []json.RawMessage
		isArray := json.Unmarshal(got["links"], &elements) == nil && elements != nil
		if text, ok := got["links"]; ok {
			const limit = 5
			few, ok := rest.Elements(text, limit)
			if len(elements) > limit+1 {
				elements = elements[:limit+1]
			}
			if ok != isArray || len(few) != len(elements) {
				t.Fatalf("%q has elements %q, %v; want %q", text, few, ok, elements)
			}
			for i := range few {
				if few[i] != string(elements[i]) {
					t.Fatalf("element %d of %q is %q, want %q", i, text, few[i], elements[i])
				}
			}
		}
	})
}

// FuzzString compares reading and writing of strings with encoding/json.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "a", `"`, `\`, "<&>", "\u2028", "ü", "\xff", "\x00", "\x7f", "\ufffd", "🙂"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
		got := rest.AppendString(nil, s)
		if want := bytes.TrimSuffix(text.Bytes(), []byte("\n")); !bytes.Equal(got, want) {
			t.Fatalf("%q is written as %s, want %s", s, got, want)
		}
		for _, value := range [][]byte{got, []byte(`"` + s + `"`)} {
			var want string
			if json.Unmarshal(value, &want) != nil {
				continue
			}
			if plain, ok := rest.PlainString(string(value)); ok && plain != want {
				t.Fatalf("%s is read as %q, want %q", value, plain, want)
			}
		}
	})
}
