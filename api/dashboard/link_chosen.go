package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"linkstream/api/links"
	"linkstream/api/transfer"
	"linkstream/schema"
)

// maxChosen bounds the links that one form changes, and maxUnasked those that it changes without a question.
const (
	maxChosen  = links.MaxRestored
	maxUnasked = 100
)

// fieldNewest names the highest ID of the links whose change was confirmed: later ones were not counted.
const fieldNewest = "newest"

// changeChosen changes the links whose boxes are checked, or all of the list, and returns to the list.
func (d *Dashboard) changeChosen(c *call) error {
	if text := c.form(fieldUndone); text != "" {
		return d.undoEdit(c, c.back(pathLinks), bulkEditOf(text))
	}
	list, back := listOf(c.back(pathLinks), pathLinks)
	ids, err := d.chosenIDs(c, list)
	if p, invalid := problemsOf(err); invalid {
		return c.seeOther(back, "Nothing was changed. "+strings.Join(slices.Sorted(maps.Values(p)), " "))
	}
	switch {
	case err != nil:
		return err
	case len(ids) == 0:
		return c.seeOther(back, "No link is selected.")
	case len(ids) > maxChosen:
		return c.seeOther(back, "Nothing was changed: more than 10,000 links are selected. Filter the list first.")
	}
	edit := bulkEdit{do: c.form("do"), tags: parseTags(c.form(links.FieldTags))}
	question := edit.question()
	switch {
	case edit.do == "export":
		return d.exportChosen(c, list, ids)
	case question == "":
		return errNoPage
	case edit.do != "delete":
		if why, err := d.refuses(c, edit); why != "" || err != nil {
			return cmp.Or(err, c.seeOther(back, why))
		}
	}
	if newest := c.formID(fieldNewest); newest > 0 {
		ids = slices.DeleteFunc(ids, func(id int64) bool { return id > newest })
	} else if n := int64(len(ids)); n > maxUnasked {
		page := chosenPage{Newest: slices.Max(ids), Back: back, Do: edit.do, Tags: c.form(links.FieldTags)}
		page.Links = counted(n, "link", "links")
		page.Question = fmt.Sprintf(question, page.Links)
		if page.All = c.form("all") == "true"; !page.All {
			page.IDs = ids
		}
		return d.render(c, "chosen", page)
	}
	done := notice{All: c.form("all") == "true"}
	if !done.All && len(ids) <= maxUnasked {
		done.Chosen = ids
	}
	if edit.do == "delete" {
		return d.deleteChosen(c, back, ids, done)
	}
	return d.editChosen(c, back, ids, edit, done)
}

// listOf returns the filter of a path of a list, and the path without what belongs to one visit.
func listOf(path, list string) (linkFilter, string) {
	to, err := url.Parse(path)
	if err != nil || to.Path != list {
		return linkFilter{}, list
	}
	filter := filterOf(func(field string) string { return clean([]byte(to.Query().Get(field))) })
	return filter, filter.on(list)(max(1, parseID(to.Query().Get("page"))))
}

// chosenIDs returns the IDs that the form names, at most one more than maxChosen.
func (d *Dashboard) chosenIDs(c *call, list linkFilter) (ids []int64, err error) {
	if c.form("all") == "true" {
		filter, err := d.Shortener.Filter(c.ctx, list.request(c))
		if err != nil {
			return nil, err
		}
		return d.DB.LinkIDs(c.ctx, c.account.ID, filter, maxChosen+1)
	}
	return c.ids(), nil
}

// outcomeOf says how many links were changed, and why others were not. failed is what has ended the change, or nil.
func outcomeOf(changed, asked int, done string, refused, failed error) string {
	verb := " were "
	if changed == 1 {
		verb = " was "
	}
	text := counted(int64(changed), "link", "links") + verb + done + "."
	left := asked - changed
	if left == 0 {
		return text
	}
	text += " " + counted(int64(left), "link", "links") + " stayed as before"
	if failed != nil {
		return text + ", because the service is busy: try again."
	}
	p, _ := problemsOf(refused)
	for _, why := range p {
		return text + ": " + why
	}
	return text + "."
}

func (d *Dashboard) deleteChosen(c *call, back string, ids []int64, done notice) error {
	// Milliseconds tell this deletion from others, see undo.
	at := time.Now().UTC().Truncate(time.Millisecond)
	deleted, refused, err := d.Shortener.ChangeByID(c.ctx, c.account.ID, ids, nil, at)
	if err != nil && deleted == 0 {
		return err
	}
	done.Text = outcomeOf(deleted, len(ids), "deleted", refused, err) + " The trash keeps them for 30 days."
	if deleted > 0 {
		done.Undo = deletion{at: at, links: int64(deleted)}.undo("", back)
	}
	done.All = done.All && deleted < len(ids) // what is left of them
	c.setNotice(done)
	return c.redirect(back)
}

// chosenPage is the data of the page that asks before many links are changed.
type chosenPage struct {
	Question, Links string
	Newest          int64   // the highest of their IDs
	All             bool    // of the list at Back
	IDs             []int64 // nil: All
	Back, Do, Tags  string
}

// exportChosen sends some links as a file; all links of the list are a file of their own.
func (d *Dashboard) exportChosen(c *call, list linkFilter, ids []int64) error {
	if c.form("all") == "true" {
		return c.redirect(list.Export())
	}
	chosen, err := d.DB.LinksByID(c.ctx, c.account.ID, ids[:min(len(ids), schema.MaxLinkBatch)])
	if err != nil {
		return err
	}
	slices.SortFunc(chosen, func(a, b schema.Link) int { return int(a.Ordinal - b.Ordinal) })
	exporter := transfer.NewExporter(d.Shortener.Base(), d.DB, d.Clicks.Of(c.account.ID))
	return d.sendFile(c, "links.csv", func(ctx context.Context, to io.Writer) error {
		return exporter.ExportThese(ctx, chosen, to)
	})
}
