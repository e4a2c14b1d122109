// Package schema holds linkstream's contracts: the domain types, the store interfaces with the outcomes of each
// method, the error codes and the click event.
//
// It imports the standard library, protobuf's wire helpers and idna, but no driver and no service. Stores (schema/postgres,
// schema/sqlite, schema/clickhouse) implement the interfaces and prove it with the suites in schema/storetest.
package schema
