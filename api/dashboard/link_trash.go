package dashboard

import (
	"strconv"
	"strings"
	"time"

	"linkstream/schema"

	"linkstream/api/request"
)

// fieldDeletedAt names, in seconds since 1970, the time of a deletion of many links.
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
	Links []linkView
}

func (d *Dashboard) showTrash(c *call) (err error) {
	page := trashPage{pager: pager{Page: c.page()}}
	var links []schema.Link
	filter := schema.LinkFilter{DeletedAfter: time.Now().Add(-schema.TrashTTL)}
	if links, page.Total, err = d.DB.Links(c.ctx, c.account.ID, filter, page.Page); err != nil {
		return err
	}
	if page.Links, err = d.withClicks(c, links); err != nil {
		d.warnWithout("trash", err)
	}
	page.turn(schema.PageSize, pagesOf(pathTrash))
	return d.render(c, "trash", page)
}

// restore restores the links that the form names, or all links that were deleted at a time.
func (d *Dashboard) restore(c *call) error {
	back := c.back(pathTrash)
	if text := c.form(fieldDeletedAt); text != "" {
		restored, refused, err := d.Shortener.RestoreAll(c.ctx, c.account.ID, time.Unix(parseID(text), 0))
		if err != nil {
			return err
		}
		if refused != nil {
			return c.seeOther(pathTrash, restoredText(c.numbers(), restored)+" "+whyNot(refused))
		}
		return c.seeOther(back, restoredText(c.numbers(), restored))
	}
	restored, why, last := 0, "", linkView{}
	for _, value := range c.http.PostArgs().PeekMulti("link") {
		domain, hash, _ := strings.Cut(clean(value), ".")
		domainID, err := strconv.ParseInt(domain, 10, 64)
		if err != nil || domainID < 0 {
			continue
		}
		link, err := d.Shortener.Restore(c.ctx, c.account.ID, hash, &domainID)
		switch text := whyNot(err); {
		case err == nil:
			restored, last = restored+1, d.linkView(link)
		case text == "":
			return err
		default:
			why = " " + hash + ": " + text
		}
	}
	switch {
	case restored == 1 && why == "":
		return c.seeOther(last.at(back), last.Name+" is back, with its clicks.")
	case restored == 0 && why == "":
		return c.seeOther(back, "No link is selected.")
	}
	return c.seeOther(back, restoredText(c.numbers(), restored)+why)
}

func restoredText(f numbers, n int) string {
	if n == 1 {
		return "1 link is back, with its clicks."
	}
	return f.counted(int64(n), "link", "links") + " are back, with their clicks."
}

// whyNot returns why a link was not restored, "" if err does not say that.
func whyNot(err error) string {
	if p, invalid := problemsOf(err); invalid {
		return p["hash"]
	}
	return clientMessage(err, schema.CodeNotFound)
}
