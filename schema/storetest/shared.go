package storetest

import (
	"testing"

	"linkstream/schema"
	"linkstream/schema/testkit"
)

var sharedBehaviours = []behaviour[schema.Database]{
	{"SharedValue gives all callers the first value", sharesFirst},
	{"SetSharedValue replaces a value", replacesShared},
	{"SharedValues returns the values with a prefix", readsShared},
	{"DeleteSharedValues deletes a range of names", deletesShared},
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

func readsShared(t *testing.T, store schema.Database) {
	want := map[string][]byte{"api a": []byte("1"), "api b": {0, 2}}
	for name, value := range map[string][]byte{"api": {3}, "api!": {4}, "ap": {5}, "api a": want["api a"],
		"api b": want["api b"]} {
		testkit.Must(t, store.SetSharedValue(t.Context(), name, value))
	}
	got, err := store.SharedValues(t.Context(), "api ")
	testkit.Must(t, err)
	testkit.Equal(t, "values", got, want)
	none, err := store.SharedValues(t.Context(), "none ")
	testkit.Must(t, err)
	testkit.Equal(t, "values of another prefix", len(none), 0)
}

func deletesShared(t *testing.T, store schema.Database) {
	names := []string{"key", "key 2026-11-09", "key 2026-11-10", "key 2026-11-11", "key a", "other"}
	for _, name := range names {
		testkit.Must(t, store.SetSharedValue(t.Context(), name, []byte(name)))
	}
	for range 2 { // the second time, there is nothing to delete
		testkit.Must(t, store.DeleteSharedValues(t.Context(), "key ", "key 2026-11-11"))
		for i, name := range names {
			_, err := store.SharedValue(t.Context(), name, nil)
			if deleted := i == 1 || i == 2; deleted != (schema.ErrorCode(err) == schema.CodeNotFound) {
				t.Errorf("%q: error %v", name, err)
			}
		}
	}
}
