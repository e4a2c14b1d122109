// Package linkstore stores links, accounts and everything that belongs to them in an SQL database: each noun has its
// statements and its scan once, in a file. Package schema has the contracts. The subpackages open databases: each has a
// driver (a DB), the engine's dialect and its migrations. Only mains import them.
//
// # How a noun is written
//
// A file has, in this order: the statements as constants, with the columns of the noun in one constant; a function that
// returns the fields into which these columns are scanned, in the same order; and the methods.
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
//	Batch, DB.Send      several statements in one transaction and one round trip; none can use another's result in Go
//	DB.Update, DB.View  a transaction; each of its statements is a round trip on Postgres, so a batch is better
//	inTurn, sendInTurn, updateInTurn
//	                    the same for what locks an account, when it is the account's turn
//
// Errors have their codes when they come from the DB: schema.ErrorCode(err) tells CodeNotFound and CodeConflict.
//
// # One text for both engines
//
// Placeholders are $1 to $n. Arguments and fields are Go's own types: the drivers turn times into columns (the zero
// time is NULL, and comes back from NULL), and lists into arrays or JSON. Both engines have CASE, coalesce, IS [NOT]
// DISTINCT FROM, ON CONFLICT, RETURNING (of plain columns), UPDATE … FROM, octet_length and true and false, and take
// CAST($1 AS bigint), where Postgres cannot infer the type of an argument; CAST($1 AS interval) makes a time.Duration
// something to add to a time. SQLite changes no rows within WITH, and needs WHERE before ON CONFLICT in INSERT …
// SELECT. Where the engines differ, a text has a marker:
//
//	{now}                         the time
//	{for update}                  locks rows until the end of the transaction; {for share}, {for key share} and
//	                              {for update skip locked}, too
//	{lock accounts}               locks the table
//	{try lock: $1}                whether a lock with a number was free, which it takes until the end of the transaction
//	id {in: $1}                   is in a list
//	{keys: $1 $2}                 rows k (domain_id, hash, place) of two lists; place counts from 1
//	{words: tags}                 rows word (value) of the words in a text that spaces separate
//	({row: k1 k2}) {among} SELECT {row: k1 k2} … {end}
//	                              is one of few rows, by an address of the row or by its primary key (of a table
//	                              whose key is id, write id {among} SELECT id … {end})
//	tag{binary}                   a text that is compared and sorted by its bytes
//	{folded: text} LIKE $1        with capital letters of ASCII made small; the pattern has none
//	{find}(text, part) > 0        contains
//	{greatest}(a, b), {least}(a, b)
//	{bytes: text}                 the bytes that hexadecimal digits spell
//	WITH q AS {materialized} (…)  Postgres executes q once, and SQLite wherever it is used
//
// Migrations have markers, too: {integer}, {boolean: column} and {time} are types, and {strict} ends a table. One that
// means the same to both engines is in the folder migrations, any other in a folder of its engine; they share numbers.
//
// A new marker is a line in each dialect. Postgres locks rows, and SQLite has one writer: transactions lock in the
// order domains, accounts, tokens, links, webhooks, and within a table in the order of IDs. On Postgres the server's
// clock counts, on SQLite the process's.
//
// # What each engine has for itself
//
// DB.InsertLinks, three statements: insertLinks of Postgres inserts all links of a batch in one round trip, from an
// array per column, since other batches of the account wait for it; SQLite has no arrays, and repeats insertLink after
// countLinks.
//
// {pending}, one query each: Postgres shows entries of the outbox in another order than it numbers them, so the
// position is a snapshot of transactions, while on SQLite it is an ID.
//
// The commands that move a store from SQLite to Postgres (move.go) read and fill whole tables.
//
// # A process that stands still
//
// A process may stop between two statements for seconds, such as on a paused virtual machine, and hold the locks of its
// transaction. Postgres ends the transaction after 2 s. Until then, only calls of the locked account wait:
//
//   - No transaction of several round trips locks rows of several accounts, or rows of an account for which the process
//     works by itself. A batch of DB.Send holds its locks only while the server executes it.
//   - A call that has waited for a lock for 100 ms is aborted (ErrAborted) and repeated after a pause without a
//     connection. Its functions may be called several times.
//   - The calls of an account that lock something take turns (inTurn), for three quarters of the connections.
//   - QueueClicks locks webhooks of many accounts in one batch, and waits for a locked account for up to 3 s.
//
// # Links that are created together
//
// Calls of CreateLink that arrive together, also for several accounts, share a statement (package groupcommit); each is
// a batch of one link. If one of the accounts is locked, each call goes on apart. CreateLinks creates up to 1000
// links of one account. The account's row is locked until
// the commit, which keeps ordinals dense and in the order of the call, so batches of an account take turns and the time
// under the lock counts. The first attempt therefore finds the hashes in use without the lock and then locks domains
// and account and inserts all links at once, in order of domain and hash, so that batches of several processes do not
// deadlock. A batch that meets a hash taken since, makes deleted links anew or has an idempotency key takes several
// statements under the lock.
//
// A new link costs what its indexes cost. On Postgres table links has three: by ID, by domain and hash, and by account
// and ordinal. The second also finds a link by account and hash, because an account's links are on its domains or on
// the default one. There is no foreign key to accounts: it would cost as much as an index, and the statements that
// create links lock the account anyway.
//
// # What a search reads
//
// A search reads the account's links in the order of the page. Columns url and title have folds (schema.Fold) in
// columns of their own only where lower-case ASCII is not enough, which engines compare by themselves: most links cost
// nothing. A word that is not ASCII can only be in a fold, and is looked for among the links that have one, by index
// links_folded. An index of trigrams would cost every new link more than all its other indexes together, and Postgres
// has it only as an extension.
//
// # Links that are reused
//
// LinkBatch.Reuse finds links by their URLs. An index of URLs would add two thirds to the cost of many new links, so
// only accounts that reuse links pay: table link_targets has the ends of their URLs. NoteTargets adds the links up to
// accounts.targets_until, and a trigger adds the new URL of an edit. A row may be of a link that leads elsewhere.
//
// # Deleted links
//
// A deleted link keeps its row, which reserves the hash. Its ordinal is negative, so no list but the trash meets it.
// Made anew, the link gets a new row. Table link_gaps has the number of deleted links per 1024 ordinals, by which
// schema.PageRange finds a page of any list.
//
// # Names
//
// All names of links are rows of table links: links themselves, and their former hashes (former_of). So one unique
// index arbitrates them, creating a link costs what it cost, and a call that creates a link with a name that is being
// renamed waits for that index and fails. In a table of their own, each new link would have to be looked up there, too.
//
// The row of a former hash looks like a purged link, with an ordinal below all others, so that only look-ups by hash
// meet it. They follow it to the link in the same query. A link also has its former hashes in a column, so that reading
// it takes no other row; statements that change one change both, under the lock on the account.
//
// If a deleted link loses its row to a new link with its hash, its former hashes become purged links.
//
// # Changes in their order
//
// Clocks of processes differ, and transactions commit in another order than they begin. So no column that a change
// itself fills tells a reader what it has not seen. Instead the reader gives a change its number: a link is unnumbered
// while version and numbered differ (index links_to_number), and NumberChanges gives it the next number of the account,
// under the lock on the account. Only visible changes get numbers, and the numbers become visible in their order; a
// link that is changed meanwhile is unnumbered again. A trigger of Postgres does that for programs of 1.0.0. Making and
// editing a link costs what it cost, for an account that nobody polls.
//
// A new link needs no number until it is changed: ordinals become visible in their order, too, by the same lock. So a
// position in the changes is an ordinal and a number. Numbers are data of the store: they stay what they are in a
// backup, and in a move to another engine.
//
// A domain that is lost or verified changes its links without a write to each of them: changed_after says so, and
// NumberChanges takes its links a thousand at a time.
//
// # Calls with an idempotency key
//
// A call is recorded with its links in the same transaction: after kill -9 both are there or neither. Which calls are
// under way in other processes is known by an advisory lock of Postgres that nobody waits for.
package linkstore
