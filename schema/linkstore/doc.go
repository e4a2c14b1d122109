// Package linkstore stores links, accounts and everything that belongs to them in an SQL database: each noun has its statements and its
// scan once, in a file. Package schema has the contracts. The subpackages open databases: each has a driver (a DB), the engine's dialect
// and its migrations. Only mains import them.
//
// # How a noun is written
//
// A file has, in this order: the statements as constants, with the columns of the noun in one constant; a function that returns the
// fields into which these columns are scanned, in the same order; and the methods.
//
//	const (
//		shareColumns   = `s.id, s.account_id, …`
//		shareOfAccount = `SELECT ` + shareColumns + ` FROM shares s WHERE account_id = $1 AND id = $2`
//	)
//
//	func shareFields(s *schema.Share) []any { return []any{&s.ID, &s.AccountID, …} }
//
//	func (s *Store) Share(ctx context.Context, accountID, id int64) (share schema.Share, err error) {
//		err = get(ctx, s.db, shareFields(&share), shareOfAccount, accountID, id)
//		return share, wrap(err, "read share %d of account %d", id, accountID)
//	}
//
// The functions are in db.go:
//
//	get, list, each     read the first row, or all rows, of a query
//	exec, execOne       execute a statement that changes rows (execOne: CodeNotFound if it changes none)
//	write               executes a statement that changes rows and returns one, with RETURNING
//	Batch, DB.Send      several statements in one transaction and one round trip; none can use the result of another in Go
//	DB.Update, DB.View  a transaction; each statement in it is a round trip on Postgres, so a batch or a condition in SQL is better
//
// Errors have their codes when they come from the DB: schema.ErrorCode(err) tells CodeNotFound and CodeConflict.
//
// # One text for both engines
//
// Placeholders are $1 to $n. Arguments and fields are Go's own types: the drivers turn times into columns (the zero time is NULL, and
// comes back from NULL), and lists into arrays or JSON. Both engines have CASE, coalesce, IS [NOT] DISTINCT FROM, ON CONFLICT, RETURNING
// (of plain columns), UPDATE … FROM, octet_length and true and false, and take CAST($1 AS bigint), where Postgres cannot infer the type of
// an argument; CAST($1 AS interval) makes a time.Duration something to add to a time. SQLite changes no rows within WITH, and needs
// WHERE before ON CONFLICT in INSERT … SELECT. Where the engines differ, a text has a marker:
//
//	{now}                         the time
//	{for update}                  locks rows until the end of the transaction; {for share}, {for key share}, {for update skip locked} too
//	{lock accounts}               locks the table
//	{try lock: $1}                takes a lock with a number, until the end of the transaction, and returns whether it was free
//	id {in: $1}                   is in a list
//	{keys: $1 $2}                 rows k (domain_id, hash, place) of two lists; place counts from 1
//	{words: tags}                 rows word (value) of the words in a text that spaces separate
//	({row: k1 k2}) {among} SELECT {row: k1 k2} … {end}
//	                              is one of few rows, by an address of the row or by its primary key (of a table whose key is id, write
//	                              id {among} SELECT id … {end})
//	tag{binary}                   a text that is compared and sorted by its bytes
//	{folded: text} LIKE $1        with capital letters of ASCII made small; the pattern has none
//	{find}(text, part) > 0        contains
//	{greatest}(a, b), {least}(a, b)
//
// A new marker is a line in each dialect. Postgres locks rows, and SQLite has one writer: transactions lock in the order accounts, links,
// webhooks, and within a table in the order of IDs.
package linkstore
