package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"iter"
	"slices"

	"linkstream/schema"
)

// The visitors of a batch are appended to table visitor_log, which is cheap. When the log has mergedVisits, a pass
// merges them into table visitors, a few links and accounts with each batch, and removes them from the log. Merging
// twice changes nothing, so a pass may begin anew at any time, and who reads unites the table with the whole log.

const (
	// mergedVisits is about how many visits a pass merges. More of them are of the same link, and who reads has a longer
	// log to read.
	mergedVisits = 1 << 16
	// rowVisits is what a row of the log costs who reads, in visits.
	rowVisits = 16
	// minMerged is how many visits of links and accounts are merged with a batch, at least. mergedPerVisit lets a pass end
	// before the next one is due: each visit is of a link and of an account.
	minMerged, mergedPerVisit = 1000, 4

	visitBytes = 4 * 8
)

// loggedVisit is the visitor of a click, as a row of the log has it.
type loggedVisit struct {
	link, account, quarter int64
	visitor                uint64
}

// appendVisits appends the visits of a batch.
func appendVisits(log []byte, b *schema.ClickBatch) []byte {
	for i, visitor := range b.Visitor {
		if visitor == 0 {
			continue
		}
		log = binary.LittleEndian.AppendUint64(log, uint64(b.LinkID[i]))
		log = binary.LittleEndian.AppendUint64(log, uint64(b.AccountID[i]))
		log = binary.LittleEndian.AppendUint64(log, uint64(quarterOf(b.ClickedAt[i])))
		log = binary.LittleEndian.AppendUint64(log, visitor)
	}
	return log
}

func loggedVisits(log []byte) iter.Seq[loggedVisit] {
	return func(yield func(loggedVisit) bool) {
		for ; len(log) >= visitBytes; log = log[visitBytes:] {
			number := func(i int) uint64 { return binary.LittleEndian.Uint64(log[8*i:]) }
			if !yield(loggedVisit{int64(number(0)), int64(number(1)), int64(number(2)), number(3)}) {
				return
			}
		}
	}
}

// visitOf returns the visit as one of an owner.
func (v *loggedVisit) visitOf(owner int64) visit {
	return visit{ownerDay{owner, v.quarter / quartersPerDay}, v.visitor, uint8(v.quarter % quartersPerDay)}
}

// appendOwned appends the visits of a log, of links and of accounts.
func appendOwned(visits []visit, log []byte) []visit {
	for v := range loggedVisits(log) {
		visits = append(visits, v.visitOf(v.link), v.visitOf(-v.account))
	}
	return visits
}

const (
	logVisits     = `INSERT INTO visitor_log (visits) VALUES (?)`
	visitorLogs   = `SELECT id, visits FROM visitor_log ORDER BY id`
	deleteVisits  = `DELETE FROM visitor_log WHERE id <= ?`
	mergeVisitors = `visitors = union_visitors(visitors, excluded.visitors)`
)

// visitorLog is what a store has in memory of the log.
type visitorLog struct {
	known   bool   // it is what the file has
	waiting []byte // visits of no pass
	rows    int    // of the waiting visits
	last    int64  // ID of a row

	pass   []visit // that are not merged yet, in the order of compareVisits
	until  int64   // the last row of the pass
	memory []visit // of passes
}

// insertVisits appends the visits of a batch to the log, and goes on with the pass.
func (c *ClickStore) insertVisits(ctx context.Context, tx *sql.Tx, visits []byte) error {
	l := &c.visitorLog
	if !l.known {
		if err := l.read(ctx, tx); err != nil {
			return err
		}
	}
	l.known = false // until the commit
	if len(visits) > 0 {
		id, err := insertedID(tx.StmtContext(ctx, c.logVisits).ExecContext(ctx, visits))
		if err != nil {
			return err
		}
		l.append(id, visits)
	}
	if len(l.pass) == 0 && len(l.waiting)/visitBytes+rowVisits*l.rows >= mergedVisits {
		l.begin()
	}
	if len(l.pass) == 0 {
		return nil
	}
	return c.merge(ctx, tx, max(minMerged, mergedPerVisit*len(visits)/visitBytes))
}

func (l *visitorLog) append(id int64, visits []byte) {
	l.waiting, l.rows, l.last = append(l.waiting, visits...), l.rows+1, id
}

// read replaces what is known by what the file has.
func (l *visitorLog) read(ctx context.Context, tx *sql.Tx) error {
	*l = visitorLog{waiting: l.waiting[:0], memory: l.memory}
	rows, err := tx.QueryContext(ctx, visitorLogs)
	return forEachRow(rows, err, func() error {
		var id int64
		var visits sql.RawBytes
		err := rows.Scan(&id, &visits)
		l.append(id, visits)
		return err
	})
}

// begin begins a pass, of all that waits.
func (l *visitorLog) begin() {
	l.memory = appendOwned(l.memory[:0], l.waiting)
	slices.SortFunc(l.memory, compareVisits)
	l.pass, l.until = l.memory, l.last
	l.waiting, l.rows = l.waiting[:0], 0
}

// merge merges about so many visits of the pass.
func (c *ClickStore) merge(ctx context.Context, tx *sql.Tx, visits int) error {
	l, sets := &c.visitorLog, c.visitors.begin(ctx, tx)
	for rest := len(l.pass) - visits; len(l.pass) > max(0, rest); {
		key := l.pass[0].ownerDay
		var set visitorSet
		set, l.pass = takeSet(l.pass)
		if err := sets.add(ctx, key.owner, key.day, []byte(set)); err != nil {
			return err
		}
	}
	if err := sets.flush(ctx); err != nil || len(l.pass) > 0 {
		return err
	}
	_, err := tx.ExecContext(ctx, deleteVisits, l.until)
	return err
}
