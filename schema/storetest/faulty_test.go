package storetest_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"linkstream/schema"
	"linkstream/schema/storetest"
)

// A method that is promoted from the real store would never fail, and a test that relies on it could not either.
func TestEachMethodOfAFaultyStoreFails(t *testing.T) {
	fault := errors.New("fault")
	var asked string
	fail := func(_ context.Context, method string) error { asked = method; return fault }
	check := func(t *testing.T, store any, methods []string) {
		for _, name := range methods {
			method := reflect.ValueOf(store).MethodByName(name)
			args := []reflect.Value{reflect.ValueOf(t.Context())}
			for i := 1; i < method.Type().NumIn(); i++ {
				args = append(args, reflect.Zero(method.Type().In(i)))
			}
			results := method.Call(args)
			if err := results[len(results)-1].Interface(); err != fault || asked != name {
				t.Errorf("%s asks for the fault of %q and returns %v", name, asked, err)
			}
		}
	}
	check(t, storetest.FaultyDatabase{Fault: fail}, storetest.Methods[schema.Database]())
	check(t, storetest.FaultyClicks{Fault: fail}, storetest.Methods[schema.ClickStore]())
	check(t, storetest.FaultyClicks{Fault: fail}, storetest.Methods[schema.ReportStore]())
}
