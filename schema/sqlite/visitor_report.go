package sqlite

import (
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"linkstream/schema"
)

const (
	// visitorDays is how many UTC days are read at a time.
	visitorDays = 32

	visitorLogRows = `SELECT visits FROM visitor_log`
	visitorsOf     = `SELECT day, visitors FROM visitors WHERE owner IN (SELECT value FROM json_each(?1)) AND day >= ?2 ` +
		`AND day < ?3`
)

// readVisitors reads the visitors of a report, if it asks for them.
func (r *reportReader) readVisitors() error {
	if !r.query.CountsVisitors() {
		return nil
	}
	owners := r.query.Links
	if owners == nil {
		owners = []int64{-r.query.AccountID}
	}
	list, err := json.Marshal(owners)
	if err != nil {
		return err
	}
	first, after := schema.DayNumber(r.query.Previous), schema.DayNumber(r.query.End().Add(utcDay-1))
	logged, err := r.loggedVisitors(owners, first, after)
	if err != nil {
		return err
	}
	for ; first < after; first += visitorDays {
		var days [visitorDays]visitorUnion
		end := min(after, first+visitorDays)
		rows, err := r.tx.query(r.ctx, visitorsOf, string(list), first, end)
		err = forEachRow(rows, err, func() error {
			var day int64
			var set []byte
			err := rows.Scan(&day, &set)
			days[day-first].add(set)
			return err
		})
		if err != nil {
			return err
		}
		for day := first; day < end; day++ {
			days[day-first].add(logged[ownerDay{0, day}])
			r.countVisitors(day, days[day-first].all())
		}
	}
	return nil
}

const utcDay = 24 * time.Hour

// loggedVisitors returns the visitors of owners in the log, united as those of owner 0.
func (r *reportReader) loggedVisitors(owners []int64, first, after int64) (map[ownerDay]visitorSet, error) {
	wanted := make(map[int64]bool, len(owners))
	for _, owner := range owners {
		wanted[owner] = true
	}
	var visits []visit
	rows, err := r.tx.query(r.ctx, visitorLogRows)
	err = forEachRow(rows, err, func() error {
		var log sql.RawBytes
		err := rows.Scan(&log)
		for v := range loggedVisits(log) {
			owner := v.link
			if r.query.Links == nil {
				owner = -v.account
			}
			if visit := v.visitOf(0); wanted[owner] && visit.day >= first && visit.day < after {
				visits = append(visits, visit)
			}
		}
		return err
	})
	return visitorSets(visits), err
}

// visitorUnion is the union of sets, in a few sets of which each is larger than the next.
type visitorUnion []visitorSet

func (u *visitorUnion) add(set visitorSet) {
	for last := len(*u) - 1; last >= 0 && len((*u)[last]) <= len(set); last-- {
		set, *u = (*u)[last].union(set), (*u)[:last]
	}
	*u = append(*u, set)
}

// all returns the union, nil if it is that of no sets.
func (u visitorUnion) all() (all visitorSet) {
	for _, set := range slices.Backward(u) {
		all = set.union(all)
	}
	return all
}

// countVisitors counts visitors of a day: once in each period in which they have clicked, and once in each of the
// totals.
func (r *reportReader) countVisitors(day int64, set visitorSet) {
	if len(set) == 0 {
		return
	}
	counts, parts, each := r.report.Visitors, r.partsOf(day), int64(1)<<set.level()
	for i := range set.len() {
		_, at := set.visitor(i)
		inside, before := false, false
		for _, part := range parts {
			switch {
			case !at.meets(part.quarters):
			case part.period < 0:
				before = true
			default:
				inside = true
				counts.Series[part.period] += each
			}
		}
		if inside {
			counts.Total += each
		}
		if before {
			counts.Previous += each
		}
	}
}

// periodPart is the quarters of an hour of a period, -1 for the time before, on a day.
type periodPart struct {
	period   int
	quarters dayQuarters
}

// partsOf returns the parts of the report's periods that are on a UTC day.
func (r *reportReader) partsOf(day int64) (parts []periodPart) {
	begin := day * quartersPerDay
	at, end := max(begin, quarterOf(r.query.Previous)), min(begin+quartersPerDay, quarterOf(r.query.End()))
	for at < end {
		part := periodPart{period: r.query.Period(time.Unix(at*secondsPerQuarter, 0))}
		for next := min(end, quarterOf(r.query.Bounds[part.period+1])); at < next; at++ {
			part.quarters.add(uint8(at - begin))
		}
		parts = append(parts, part)
	}
	return parts
}
