package dashboard

import (
	"cmp"
	"context"

	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/schema"
)

// tagsPerPage bounds the rows of the page of tags.
const tagsPerPage = 100

const pathTag = pathTags + "/{tag}"

func (d *Dashboard) routeTags() {
	d.get(pathTags, request.Reads, d.listTags)
	d.get(pathTags+".txt", request.Reads, d.namesOfTags)
	d.get(pathTag, request.Reads, d.showTag)
	d.post(pathTag+"/rename", request.Reads, d.renameTag)
	d.keep(pathTag+"/rename", links.FieldNewTag)
	d.post(pathTag+"/delete", request.Reads, d.deleteTag)
}

// maxSuggested bounds the tags among which the script looks for suggestions.
const maxSuggested = 1000

// namesOfTags answers with the first tags of the account, one per line.
func (d *Dashboard) namesOfTags(c *call) error {
	tags, _, err := d.Shortener.Tags(c.ctx, c.account.ID, "")
	if err != nil {
		return err
	}
	c.http.SetContentType("text/plain; charset=utf-8")
	for _, tag := range tags[:min(len(tags), maxSuggested)] {
		c.http.Response.AppendBodyString(tag.Tag + "\n")
	}
	return nil
}

// tagsPage is the data of the list of tags.
type tagsPage struct {
	pager
	Tags     []links.TagCount
	NoClicks bool // the click store does not answer
	More     bool // the account has other tags, which the list does not show
}

// listTags counts the links and clicks of each tag.
func (d *Dashboard) listTags(c *call) error {
	var page tagsPage
	tags, more, err := d.Shortener.Tags(c.ctx, c.account.ID, "")
	if err != nil {
		return err
	}
	page.Total, page.More = int64(len(tags)), more
	page.Page = min(c.page(), max(1, (page.Total+tagsPerPage-1)/tagsPerPage))
	page.turn(tagsPerPage, pagesOf(pathTags))
	page.Tags = tags[(page.Page-1)*tagsPerPage : min(page.Page*tagsPerPage, page.Total)]
	counting, cancel := context.WithTimeout(c.ctx, clicksTimeout)
	defer cancel()
	if err := d.Shortener.CountClicks(counting, d.Clicks.Of(c.account.ID), c.account.ID, tags); err != nil {
		d.warnWithout("tags", err)
		page.NoClicks = true
	}
	return d.render(c, "tags", page)
}

// tagPage is the data of the page that renames or deletes a tag.
type tagPage struct {
	Tag   string
	Path  string
	Links int64  // that have the tag
	New   string // its new name, as typed
	Merge int64  // links that have the new tag already, which the reader has to confirm
}

// tagPage returns the page of the tag that the path names. CodeNotFound if no link of the account has the tag.
func (d *Dashboard) tagPage(c *call) (tagPage, error) {
	page := tagPage{Tag: c.pathValue("tag")}
	page.Path = pathTags + "/" + page.Tag
	if !schema.ValidTag(page.Tag) {
		return page, errNoPage
	}
	var err error
	if page.Links, err = d.countTagged(c, page.Tag); err == nil && page.Links == 0 {
		err = errNoPage
	}
	return page, err
}

func (d *Dashboard) countTagged(c *call, tag string) (int64, error) {
	_, total, err := d.DB.Links(c.ctx, c.account.ID, schema.LinkFilter{Tag: tag}, 1)
	return total, err
}

func (d *Dashboard) showTag(c *call) error {
	page, err := d.tagPage(c)
	if err != nil {
		return err
	}
	page.New = cmp.Or(c.typed(links.FieldNewTag), page.Tag)
	return d.render(c, "tag", page)
}

// renameTag asks first if the new tag exists already, since that cannot be undone.
func (d *Dashboard) renameTag(c *call) error {
	page, err := d.tagPage(c)
	if err != nil {
		return err
	}
	page.New = cut(schema.Fold(c.form(links.FieldNewTag)), maxAsked)
	if c.form("merge") != page.New && schema.ValidTag(page.New) && page.New != page.Tag {
		if page.Merge, err = d.countTagged(c, page.New); err != nil {
			return err
		}
		if page.Merge > 0 {
			return d.render(c, "tag", page)
		}
	}
	n, err := d.Shortener.RenameTag(c.ctx, c.account.ID, page.Tag, page.New)
	if p, invalid := problemsOf(err); invalid {
		return d.invalid(c, "tag", page, p)
	}
	if err != nil {
		return err
	}
	return c.seeOther(pathTags, "The tag “"+page.Tag+"” is now “"+page.New+"” on "+counted(n, "link", "links")+
		".")
}

func (d *Dashboard) deleteTag(c *call) error {
	page, err := d.tagPage(c)
	if err != nil {
		return err
	}
	n, err := d.Shortener.DeleteTag(c.ctx, c.account.ID, page.Tag)
	if err != nil {
		return err
	}
	return c.seeOther(pathTags, "The tag “"+page.Tag+"” was removed from "+counted(n, "link", "links")+".")
}
