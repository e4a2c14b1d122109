package schema_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

// variants returns variants with weights, by names that are letters.
func variants(weights map[string]int) (all []schema.Variant) {
	for name := 'a'; name <= 'z'; name++ {
		if weight := weights[string(name)]; weight > 0 {
			all = append(all, schema.Variant{Name: string(name), URL: "https://example.com/", Weight: weight})
		}
	}
	return all
}

// names returns the names of the variants of all classes.
func names(e *schema.Behaviour) (all [100]string) {
	for class := range all {
		all[class] = e.Variants[e.Shares[class]-'a'].Name
	}
	return all
}

// After an edit of the weights, the smallest possible number of visitors has another variant.
func TestSharesStay(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	e := &schema.Behaviour{}
	for range 500 {
		weights, left := map[string]int{}, 100
		for _, letter := range "abcdefgh"[:1+random.IntN(7)] {
			weight := min(left, random.IntN(60))
			weights[string(letter)] += weight
			left -= weight
		}
		weights["h"] += left
		next := &schema.Behaviour{Variants: variants(weights)}
		next.Share(e)
		testkit.Must(t, next.Check())
		if e.Shares != "" {
			moved, needed := 0, 0
			was, is := names(e), names(next)
			for class := range was {
				if was[class] != is[class] {
					moved++
				}
			}
			for _, v := range e.Variants {
				needed += max(0, v.Weight-weights[v.Name])
			}
			testkit.Equal(t, fmt.Sprintf("classes that moved from %v to %v", e.Variants, weights), moved, needed)
		}
		e = next
	}
	e.Variants = nil
	e.Share(e)
	testkit.Equal(t, "shares without variants", e.Shares, "")
}

func TestBehaviourColumn(t *testing.T) {
	scan := func(text string) (e *schema.Behaviour, err error) {
		err = schema.BehaviourColumn{Of: &e}.Scan(text)
		return e, err
	}
	if e, err := scan(""); e != nil || err != nil {
		t.Errorf("no extension: %v, error %v", e, err)
	}
	for _, text := range []string{
		`{"rules":[{"name":"a","if":{"weather":["rain"]},"url":"https://example.com/"}]}`, // must not match in any weather
		`{"later":1}`, `{`, `{"variants":[{"name":"a","url":"https://example.com/","weight":100}]}`,
		`{"variants":[{"name":"a","url":"https://example.com/","weight":99}],"shares":"` + strings.Repeat("a", 100) + `"}`,
	} {
		if e, err := scan(text); err == nil {
			t.Errorf("%s is read as %+v", text, e)
		}
	}
}
