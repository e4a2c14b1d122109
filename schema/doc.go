// Package schema defines what linkstream's packages agree on:
//
//   - the domain types: Account, Token, Session, Domain, Link, Click and the reports made of clicks
//   - the store interfaces, one per noun, with the outcomes of each method
//   - Error and its codes, which cross the boundaries between packages
//   - the click event and its codec, see click.proto
//   - Host and BaseURL, the canonical forms of hosts and of the public addresses of services
//
// The methods of stores document an outcome as "CodeNotFound if …": an *Error with that code. In addition every method
// may return CodeUnavailable, if the engine does not answer, and CodeInternal. All methods may be called concurrently.
//
// Package schema imports the standard library, protobuf's wire helpers and idna, but no driver and no service. The
// stores, schema/linkstore, schema/sqlite and schema/clickhouse, implement the interfaces and pass the suites of
// schema/storetest.
package schema
