package verify

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// printedGaps bounds the gaps of a lane in the table; JSON has more.
const printedGaps = 20

// WriteJSON writes the report as indented JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	p := printer{w: w}
	r.writeTotals(&p)
	if len(r.Lanes) > 0 {
		r.writeLanes(&p)
	}
	r.writeNotes(&p)
	if r.AddsUp {
		p.printf("\nIt adds up: every recorded click is accounted for.\n")
	}
	return p.err
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (r *Report) writeTotals(p *printer) {
	t := &r.Totals
	line := func(name string, clicks uint64, about string) {
		p.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-14s %14d  %s", name, clicks, about), " "))
	}
	line("recorded", t.Recorded, fmt.Sprintf("clicks, in %d lanes", t.Lanes))
	line("counted", t.Counted, "")
	line("pending", t.Spool+t.Topic, fmt.Sprintf("%d in spools, %d in the topic", t.Spool, t.Topic))
	line("set aside", t.SetAside, "in the dead letter topic, or in *.refused files of spools")
	line("dropped", t.Dropped, "found no room in a spool")
	line("missing", t.Missing, "")
	if t.Repeated > 0 {
		line("counted twice", t.Repeated, "")
	}
	if r.Imported > 0 {
		line("imported", r.Imported, "clicks that other services have counted, not among the others")
	}
}

func (r *Report) writeLanes(p *printer) {
	p.printf("\nLanes with clicks that are not counted:\n\n")
	if p.err != nil {
		return
	}
	table := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	rows := printer{w: table}
	rows.printf("LANE\tRECORDED\tCOUNTED\tPENDING\tSET ASIDE\tMISSING\tTWICE\n")
	for _, l := range r.Lanes {
		rows.printf("%s\t%d\t%d\t%d\t%d\t%d\t%d\n", l.Lane, l.Recorded, l.Counted, l.Spool+l.Topic, l.SetAside,
			l.Missing, l.Repeated)
	}
	if p.err = rows.err; p.err == nil {
		p.err = table.Flush()
	}
	if r.MoreLanes > 0 {
		p.printf("and %d more\n", r.MoreLanes)
	}
	for _, l := range r.Lanes {
		if l.Missing > 0 {
			l.writeGaps(p)
		}
	}
}

func (l *Lane) writeGaps(p *printer) {
	p.printf("\nMissing in lane %s:\n", l.Lane)
	for n, g := range l.Gaps {
		if n == printedGaps {
			p.printf("  and %d more ranges, see -json\n", len(l.Gaps)-n)
			break
		}
		p.printf("  %s\n", g)
	}
	if l.Unnamed > 0 {
		p.printf("  %d clicks up to %d, whose numbers are not known\n", l.Unnamed, l.Recorded)
	}
}

// String says which numbers are missing, and how that was noticed.
func (g Gap) String() string {
	text := fmt.Sprintf("%d to %d", g.First, g.Last)
	if g.First == g.Last {
		text = fmt.Sprint(g.First)
	}
	if g.Found.IsZero() {
		return text + ": neither in a spool nor in the topic"
	}
	return fmt.Sprintf("%s: noticed at offset %d of partition %d, %s", text, g.Offset, g.Partition,
		g.Found.Format(time.RFC3339))
}

func (r *Report) writeNotes(p *printer) {
	p.printf("\n")
	for _, s := range r.Spools {
		p.printf("The spool %s was read at %s: %d lanes.\n", s.Dir, s.At.Format(time.RFC3339), s.Lanes)
		for _, path := range s.Damaged {
			p.printf("Clicks in %s cannot be read.\n", path)
		}
	}
	if len(r.Spools) == 0 {
		p.printf("No spool was read: clicks that wait there, or are lost at the end of a lane, are not known.\n")
	}
	if r.DeadLetters > 0 {
		p.printf("The dead letter topic has %d records; one may be there more than once.\n", r.DeadLetters)
	}
	for _, part := range r.Partitions {
		if part.Note != "" {
			p.printf("Partition %d will be counted from its start: %s.\n", part.Partition, part.Note)
		}
	}
	for _, note := range r.Notes {
		p.printf("%s\n", note)
	}
}
