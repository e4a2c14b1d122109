package transfer

import (
	"context"
	"encoding/csv"
	"encoding/json"
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
	fieldHasPassword, fieldClicks,
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
		ctx context.Context, accountID int64, filter schema.LinkFilter, ordinal int64, limit int,
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

// Export writes the links that match filter and that an account has when the export begins, the oldest first, with
// their counts, as a CSV file of format Linkstream in UTF-8 with a byte order mark and line breaks of "\r\n" (RFC
// 4180). It returns the number of links written. Cells that a spreadsheet may take for formulas are guarded. A link
// that is deleted meanwhile may be left out. A link on the default domain has no domain, so that the file can be
// imported by a service with another default domain. is_active is the owner's setting.
func (e *Exporter) Export(
	ctx context.Context, accountID int64, filter schema.LinkFilter, w io.Writer,
) (written int64, err error) {
	newest, _, err := e.links.Links(ctx, accountID, schema.LinkFilter{}, 1)
	if err != nil {
		return 0, err
	}
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(exportColumns); err != nil {
		return 0, err
	}
	last := int64(0)
	if len(newest) > 0 {
		last = newest[0].Ordinal
	}
	for after := int64(0); after < last; {
		page, err := e.links.LinksAfter(ctx, accountID, filter, after, exportPage)
		if err != nil {
			return written, err
		}
		if len(page) == 0 {
			break // no other link matches, or the newest one was deleted meanwhile
		}
		after = page[len(page)-1].Ordinal
		page = slices.DeleteFunc(page, func(l schema.Link) bool { return l.Ordinal > last })
		if err := e.writePage(ctx, out, page); err != nil {
			return written, err
		}
		written += int64(len(page))
	}
	out.Flush()
	return written, out.Error()
}

// ExportThese is Export for some links.
func (e *Exporter) ExportThese(ctx context.Context, chosen []schema.Link, w io.Writer) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	if err := out.Write(exportColumns); err != nil {
		return err
	}
	return e.writePage(ctx, out, chosen)
}

func (e *Exporter) writePage(ctx context.Context, out *csv.Writer, page []schema.Link) error {
	ids := make([]int64, len(page))
	for i, link := range page {
		ids[i] = link.ID
	}
	counts, err := e.clicks.ClickCounts(ctx, ids)
	if err != nil {
		return err
	}
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
		string(extension.PathMode), strconv.FormatBool(extension.Password != 0),
		strconv.FormatInt(clicks, 10),
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
