package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var sharedBehaviours = []behaviour[schema.Database]{
	{"SharedValue gives all callers the first value", sharesFirst},
	{"SetSharedValue replaces a value", replacesShared},
}

func sharesFirst(t *testing.T, store schema.Database) {
	_, err := store.SharedValue(t.Context(), "name", nil)
	testkit.WantCode(t, err, schema.CodeNotFound)
	values := make([][]byte, 8)
	for _, err := range concurrently(len(values), func(i int) (err error) {
		values[i], err = store.SharedValue(t.Context(), "name", []byte{0, byte(i)})
		return err
	}) {
		testkit.Must(t, err)
	}
	for _, value := range values {
		testkit.Equal(t, "value", value, values[0])
	}
	other, err := store.SharedValue(t.Context(), "other", []byte("other"))
	testkit.Must(t, err)
	testkit.Equal(t, "another value", string(other), "other")
}

func replacesShared(t *testing.T, store schema.Database) {
	for _, value := range []string{"one", "two"} {
		testkit.Must(t, store.SetSharedValue(t.Context(), "name", []byte(value)))
		got, err := store.SharedValue(t.Context(), "name", []byte("first"))
		testkit.Must(t, err)
		testkit.Equal(t, "value", string(got), value)
	}
}
