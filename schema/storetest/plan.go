package storetest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"linkstream/schema/linkstore"
)

// Texts are the different statements that stores execute, by the methods of schema.Database that execute them. A test
// of their plans gets all statements from a run of TestDatabase.
type Texts struct {
	mu  sync.Mutex
	all map[[2]string]bool // by method and text
}

// Of returns the store, whose statements are added.
func (x *Texts) Of(store *linkstore.Store) *linkstore.Store {
	return Watched(store, func(_ context.Context, step Step) error {
		if step.Text != "" {
			x.add(methodOf(), step.Text)
		}
		return nil
	})
}

func (x *Texts) add(method, text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil {
		x.all = map[[2]string]bool{}
	}
	x.all[[2]string{method, text}] = true
}

// Plan is how an engine executes a statement: a line for each step.
type Plan struct {
	Method, Text string
	Steps        []string
}

// String returns the statement in a line, and its steps.
func (p *Plan) String() string {
	return p.Method + ": " + strings.Join(strings.Fields(p.Text), " ") + "\n" + strings.Join(p.Steps, "\n")
}

// Has reports whether a step of the plan contains part.
func (p *Plan) Has(part string) bool {
	return slices.ContainsFunc(p.Steps, func(step string) bool { return strings.Contains(step, part) })
}

// Plans are the plans of all statements.
type Plans []Plan

// Explain returns the plans of all statements, which explain gets from the engine.
func (x *Texts) Explain(explain func(text string) (steps []string)) (plans Plans) {
	texts := slices.SortedFunc(maps.Keys(x.all), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, text := range texts {
		plans = append(plans, Plan{Method: text[0], Text: text[1], Steps: explain(text[1])})
	}
	return plans
}

// WantNone requires that no plan has a step that is bad, except for the exceptions, which are methods and steps with a
// reason, and that there is no other exception.
func (p Plans) WantNone(t *testing.T, bad func(*Plan, string) bool, exceptions map[string]string) {
	t.Helper()
	met := map[string]bool{}
	for i := range p {
		for _, step := range p[i].Steps {
			if !bad(&p[i], step) {
				continue
			}
			name := p[i].Method + ": " + strings.TrimLeft(step, " ->")
			if met[name] = true; exceptions[name] == "" {
				t.Errorf("%q is a step of %s", name, &p[i])
			}
		}
	}
	for name := range exceptions {
		if !met[name] {
			t.Errorf("there is no step %q", name)
		}
	}
}

// Want requires that there are statements of a method with a part, and that the plan of each has a step.
func (p Plans) Want(t *testing.T, method, part, step string) {
	t.Helper()
	found := false
	for i := range p {
		if p[i].Method != method || !strings.Contains(p[i].Text, part) {
			continue
		}
		if found = true; !p[i].Has(step) {
			t.Errorf("there is no step %q in %s", step, &p[i])
		}
	}
	if !found {
		t.Errorf("no statement of %s has %q", method, part)
	}
}
