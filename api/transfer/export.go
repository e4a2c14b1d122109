package transfer

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"linkstream/api/csvfile"
	"linkstream/api/links"
	"linkstream/schema"
)

// exportPage is the number of links that an export has in memory, 2.4 MiB if all of them are as long as can be.
const exportPage = 200

// timeLayout is the layout of times in the API.
const timeLayout = "2006-01-02T15:04:05-07:00"

// exportColumns are the columns of format Linkstream, behind the byte order mark.
var exportColumns = []string{
	csvfile.BOM + fieldShortURL, "alias", fieldHost, links.FieldLongURL, links.FieldTitle, links.FieldTags,
	links.FieldIsActive, fieldCreatedAt, links.FieldExpiresAt, links.FieldExpiredURL, links.FieldForwardQuery,
	links.FieldRules, links.FieldVariants, links.FieldCard, links.FieldMaxClicks, links.FieldPathMode,
	fieldFormer, fieldHasPassword, links.FieldExternalID, fieldClicks,
}

// Exporter writes links to files. Its methods may be called concurrently.
type Exporter struct {
	base   schema.BaseURL // of short links
	links  linkLister
	clicks clickCounter
}

// linkLister is the part of schema.LinkStore that exports need.
type linkLister interface {
	Links(
		ctx context.Context, accountID int64, filter schema.LinkFilter, page int64,
	) (found []schema.Link, total int64, err error)
	LinksAfter(
		ctx context.Context, accountID int64, filter schema.LinkFilter, after schema.LinkPosition, limit int,
	) ([]schema.Link, error)
}

// clickCounter is the part of schema.ClickStore that exports need.
type clickCounter interface {
	ClickCounts(ctx context.Context, linkIDs []int64) (map[int64]int64, error)
}

// NewExporter returns an Exporter of links whose base on the default domain is given.
func NewExporter(base schema.BaseURL, store linkLister, clicks clickCounter) *Exporter {
	return &Exporter{base, store, clicks}
}

// Export writes the links that Pages reads, with their counts, as a CSV file of format Linkstream in UTF-8 with a byte
// order mark and line breaks of "\r\n" (RFC 4180). It returns the number of links written. Cells that a spreadsheet may
// take for formulas are guarded. A link on the default domain has no domain, so that the file can be imported by a
// service with another default domain. is_active is the owner's setting.
func (e *Exporter) Export(
	ctx context.Context, accountID int64, filter schema.LinkFilter, w io.Writer,
) (written int64, err error) {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(exportColumns); err != nil {
		return 0, err
	}
	err = e.Pages(ctx, accountID, filter, func(page []schema.Link, counts map[int64]int64) error {
		written += int64(len(page))
		return e.writePage(out, page, counts)
	})
	out.Flush()
	return written, errors.Join(err, out.Error())
}

// Pages calls write with pages of the links that match filter and that an account has when the export begins, and with
// their counts: the oldest first, or of deleted ones the last deleted first. A link that is deleted meanwhile may be
// left out.
func (e *Exporter) Pages(
	ctx context.Context, accountID int64, filter schema.LinkFilter,
	write func(page []schema.Link, counts map[int64]int64) error,
) error {
	newest, _, err := e.links.Links(ctx, accountID, schema.LinkFilter{}, 1)
	if err != nil {
		return err
	}
	last := int64(0)
	if len(newest) > 0 {
		last = newest[0].Ordinal
	}
	filter.OldestFirst = true
	for after := (schema.LinkPosition{}); ; {
		page, err := e.links.LinksAfter(ctx, accountID, filter, after, exportPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		after = schema.PositionOf(page[len(page)-1])
		page = slices.DeleteFunc(page, func(l schema.Link) bool { return l.Ordinal > last })
		counts, err := e.counts(ctx, page)
		if err == nil {
			err = write(page, counts)
		}
		if err != nil || after.Ordinal >= last && last > 0 {
			return err
		}
	}
}

// ExportThese is Export for some links.
func (e *Exporter) ExportThese(ctx context.Context, chosen []schema.Link, w io.Writer) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(exportColumns); err != nil {
		return err
	}
	counts, err := e.counts(ctx, chosen)
	if err != nil {
		return err
	}
	return e.writePage(out, chosen, counts)
}

func (e *Exporter) counts(ctx context.Context, page []schema.Link) (map[int64]int64, error) {
	ids := make([]int64, len(page))
	for i, link := range page {
		ids[i] = link.ID
	}
	return e.clicks.ClickCounts(ctx, ids)
}

func (e *Exporter) writePage(out *csv.Writer, page []schema.Link, counts map[int64]int64) error {
	for _, link := range page {
		if err := out.Write(e.cells(link, counts[link.ID])); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// cells returns the cells of exportColumns.
func (e *Exporter) cells(link schema.Link, clicks int64) []string {
	var extension schema.Behaviour
	if link.Behaviour != nil {
		extension = *link.Behaviour
	}
	cells := []string{
		e.base.ShortURL(link), link.Hash, link.Host, link.URL, link.Title, strings.Join(link.Tags, " "),
		strconv.FormatBool(link.Active), formatTime(link.CreatedAt), formatTime(link.ExpiresAt), link.ExpiredURL,
		strconv.FormatBool(link.ForwardQuery), formatJSON(extension.Rules), formatJSON(extension.Variants),
		formatJSON(extension.Card), formatLimit(extension.MaxClicks),
		string(extension.PathMode), strings.Join(link.FormerHashes, " "),
		strconv.FormatBool(extension.Password != 0), link.ExternalID, strconv.FormatInt(clicks, 10),
	}
	for i, cell := range cells {
		cells[i] = csvfile.Guard(cell)
	}
	return cells
}

func formatLimit(most int64) string {
	if most == 0 {
		return ""
	}
	return strconv.FormatInt(most, 10)
}

// formatJSON returns a part of a behaviour in the form of the API, and "" for a missing part.
func formatJSON(part any) string {
	text, _ := json.Marshal(part) // strings and numbers can be encoded
	if string(text) == "null" {
		return ""
	}
	return string(text)
}

// formatTime returns "" for the zero time.
func formatTime(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(timeLayout)
}
