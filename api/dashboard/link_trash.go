package dashboard

import (
	"fmt"
	"strings"
	"time"

	"linkstream/schema"

	"linkstream/api/request"
)

// fieldDeletedAt names a deletion of many links.
const fieldDeletedAt = "deleted_at"

// inTrash follows what says that a link was deleted.
const inTrash = " The trash keeps it for 30 days."

func (d *Dashboard) routeTrash() {
	d.get(pathTrash, request.Reads, d.showTrash)
	d.post(pathTrash+"/restore", request.Writes, d.restore)
}

// trashPage is the data of the page of deleted links.
type trashPage struct {
	pager
	linkFilter        // the trash has its search and its number of rows
	Self       string // path of this page
	Links      []linkView
}

// KeptUntil returns when a deleted link is removed for good.
func (l linkView) KeptUntil() time.Time { return l.UpdatedAt.Add(schema.TrashTTL) }

func (d *Dashboard) showTrash(c *call) (err error) {
	filter, _ := listOf(pathTrash+"?"+string(c.http.QueryArgs().QueryString()), pathTrash)
	page := trashPage{pager: pager{Page: c.page()}, linkFilter: filter.inTrash()}
	req := page.request(c)
	req.Page, req.Deleted = page.Page, true
	var links []schema.Link
	links, page.Total, err = d.Shortener.List(c.ctx, nil, req)
	wrong, invalid := problemsOf(err)
	if err != nil && !invalid {
		return err
	}
	page.Self = page.on(pathTrash)(page.Page)
	page.turn(page.size(), page.on(pathTrash))
	page.Sizes = page.sizes(pathTrash)
	if invalid {
		return d.invalid(c, "trash", page, wrong)
	}
	if page.Links, err = d.withClicks(c, links); err != nil {
		d.warnWithout("trash", err)
	}
	return d.render(c, "trash", page)
}

// inTrash returns the part of a filter that the trash has.
func (f linkFilter) inTrash() linkFilter { return linkFilter{Query: f.Query, Rows: f.Rows} }

// restore restores a link, the links whose boxes are checked, or all links that were deleted together.
func (d *Dashboard) restore(c *call) error {
	back := c.back(pathTrash)
	if text := c.form(fieldDeletedAt); text != "" {
		return d.restoreAll(c, back, undoOf(text))
	}
	if key := c.form("link"); key != "" {
		return d.restoreOne(c, back, key)
	}
	ids := c.ids()
	switch {
	case len(ids) == 0:
		return c.seeOther(back, "No link is selected.")
	case len(ids) > schema.MaxLinkBatch:
		return c.seeOther(back, "Nothing was restored: more than 1,000 links are selected.")
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	restored, err := d.DB.RestoreLinks(c.ctx, c.account.ID, ids, now.Add(-schema.TrashTTL), now)
	if err != nil {
		return err
	}
	text := restoredText(restored) + cannotReturn(int64(len(ids))-restored)
	c.setNotice(notice{Text: text, Undo: undoRestore(now, restored, back)})
	return c.redirect(back)
}

// undoRestore returns the form that deletes the links again which were restored at a time. Elsewhere than in the trash,
// the restore was an undo itself.
func undoRestore(at time.Time, restored int64, back string) *undo {
	if restored == 0 || restored > maxChosen || !strings.HasPrefix(back, pathTrash) {
		return nil
	}
	return bulkEdit{do: "restore", at: at, changed: restored, parts: []uint{1}}.undo("", back)
}

// restoreOne restores the link with a key, which was deleted alone.
func (d *Dashboard) restoreOne(c *call, back, key string) error {
	domain, hash, _ := strings.Cut(key, ".")
	domainID := parseID(domain)
	link, err := d.Shortener.Restore(c.ctx, c.account.ID, hash, &domainID)
	if why := whyNot(err); why != "" {
		return c.seeOther(back, hash+": "+why)
	}
	if err != nil {
		return err
	}
	view := d.linkView(link)
	c.setNotice(notice{Text: view.Name + " is back, with its clicks.", Undo: undoRestore(link.UpdatedAt, 1, back)})
	return c.redirect(view.at(back))
}

func restoredText(n int64) string {
	if n == 1 {
		return "1 link is back, with its clicks."
	}
	return counted(n, "link", "links") + " are back, with their clicks."
}

// cannotReturn says why some links stay deleted, "" if there are none.
func cannotReturn(n int64) string {
	switch n {
	case 0:
		return ""
	case 1:
		return " 1 link cannot come back: you have restored it or created it anew, or deleted its domain."
	}
	return " " + counted(n, "link", "links") + " cannot come back: you have restored them or created them anew, or " +
		"deleted their domain."
}

// deletion is the links that were deleted together, and how many of them are back.
type deletion struct {
	at          time.Time // 0 for all links that the trash shows
	links, back int64
	since       time.Time // when they were restored, in all requests
}

// undoOf reads the value that String returns.
func undoOf(text string) (u deletion) {
	var ms, since int64
	_, _ = fmt.Sscanf(text, "%d.%d.%d.%d", &ms, &u.links, &u.back, &since) // of another value nothing is restored
	u.at, u.since = time.UnixMilli(ms).UTC(), time.UnixMilli(since).UTC()
	if now := time.Now().UTC().Truncate(time.Millisecond); now.Sub(u.since).Abs() > time.Hour {
		u.since = now
	}
	return u
}

func (u deletion) String() string {
	return fmt.Sprintf("%d.%d.%d.%d", u.at.UnixMilli(), u.links, u.back, max(0, u.since.UnixMilli()))
}

// undo returns the form that restores the links.
func (u deletion) undo(label, back string) *undo {
	return &undo{Label: label, Path: pathTrash + "/restore", Field: fieldDeletedAt, Value: u.String(), Back: back}
}

// restoreTime is how long one request restores links. The page that it leads to says how many are back, and sends the
// next request.
var restoreTime = 2 * time.Second

// restoreAll restores links that were deleted together, as many as it can in restoreTime.
func (d *Dashboard) restoreAll(c *call, back string, u deletion) error {
	filter := schema.LinkFilter{ChangedAt: u.at}
	var over int64 // links of the trash that wait for the next request
	if u.at.UnixMilli() == 0 {
		list, _ := listOf(back, pathTrash)
		req := list.inTrash().request(c)
		req.Deleted = true
		var err error
		if filter, err = d.Shortener.Filter(c.ctx, req); err != nil {
			return err
		}
		over = max(0, u.links-u.back-maxChosen)
	}
	restored, left, err := d.Shortener.RestoreAll(c.ctx, c.account.ID, filter, u.since, time.Now().Add(restoreTime))
	if err != nil && restored == 0 {
		return err
	}
	left += over
	u.back += restored
	done := notice{Text: restoredText(u.back)}
	if left == 0 {
		done.Text += cannotReturn(max(0, u.links-u.back))
		done.Undo = undoRestore(u.since, u.back, back)
	} else {
		done.Text = number(u.back) + " of " + number(u.links) + " links are back, with their clicks."
		done.Undo = u.undo("Restore the others", back)
		done.Undo.Continues = err == nil
	}
	c.setNotice(done)
	return c.redirect(back)
}

// whyNot returns why a link was not restored, "" if err does not say that.
func whyNot(err error) string {
	if p, invalid := problemsOf(err); invalid {
		return p["hash"]
	}
	return clientMessage(err, schema.CodeNotFound)
}
