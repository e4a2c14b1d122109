package rest

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"linkstream/api/request"
	"linkstream/schema/testkit"
)

// With the race detector, SQLite takes up to twenty times as long to store many links.
func init() { bulkTimeout = testkit.Patience }

// For tests of the JSON codec.
var (
	IsField      = isField
	AppendString = appendString
	PlainString  = plainString
)

// Members returns the members of an object that have known names.
func Members(object []byte) (map[string]json.RawMessage, bool) {
	members, ok := appendMembers(nil, string(object))
	byName := map[string]json.RawMessage{}
	for _, m := range members {
		byName[m.name] = json.RawMessage(m.value)
	}
	return byName, ok
}

// Elements returns the elements of an array, at most one more than limit.
func Elements(array []byte, limit int) ([]string, bool) {
	return appendElements(nil, string(array), limit)
}

// Prices returns the price of each method of each path that is routed.
func (a *API) Prices() map[string]request.Price {
	prices := map[string]request.Price{}
	for method, paths := range a.router.List() {
		for _, path := range paths {
			if method != fasthttp.MethodHead { // as GET
				prices[method+" "+path] = a.prices[method+" "+path]
			}
		}
	}
	return prices
}
