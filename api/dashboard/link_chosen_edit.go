package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"linkstream/api/links"
	"linkstream/schema"
)

// fieldUndone names an edit of many links that is undone.
const fieldUndone = "undone"

// maxEditTags bounds the tags that one edit adds or removes, and maxParts the kinds of links that one undo tells apart.
const (
	maxEditTags = 20
	maxParts    = 200
)

// bulkEdit is an edit of many links. Links that it changes in the same parts have the same time of change, by which its
// undo finds them: the first of parts has at, the next one a millisecond later. So a tag that a link had before stays.
type bulkEdit struct {
	do   string // "tag" and "untag" with tags, "off", "on"; "delete" in questions; "restore", to undo it
	tags []string

	at      time.Time
	changed int64
	parts   []uint
}

// question returns the question before the edit, with %s for the links, "" if there is no such edit.
func (e bulkEdit) question() string {
	tags := strings.ReplaceAll(strings.Join(e.tags, ", "), "%", "%%")
	return map[string]string{"tag": "Add " + tags + " to %s?", "untag": "Remove " + tags + " from %s?",
		"off": "Switch off %s?", "on": "Switch on %s?", "delete": "Delete %s?"}[e.do]
}

// done is what the notice says of the changed links.
func (e bulkEdit) done() string {
	tags := strings.Join(e.tags, ", ")
	return map[string]string{"tag": "tagged " + tags, "untag": "freed of " + tags, "off": "switched off",
		"on": "switched on", "restore": "restored"}[e.do]
}

// of returns the parts in which the edit changes a link: a bit for each tag, or for its state.
func (e bulkEdit) of(link schema.Link) (parts uint) {
	if e.do == "on" || e.do == "off" {
		if link.Active != (e.do == "on") {
			parts = 1
		}
		return parts
	}
	for i, tag := range e.tags {
		if slices.Contains(link.Tags, tag) == (e.do == "untag") {
			parts |= 1 << i
		}
	}
	return parts
}

// edit returns the edit of some parts, or the one that undoes it, nil to delete links.
func (e bulkEdit) edit(parts uint, undo bool) *links.Edit {
	if e.do == "restore" {
		return nil
	}
	if e.do == "on" || e.do == "off" {
		return &links.Edit{IsActive: new((e.do == "on") != undo)}
	}
	var tags []string
	for i, tag := range e.tags {
		if parts>>i&1 == 1 {
			tags = append(tags, tag)
		}
	}
	if (e.do == "tag") != undo {
		return &links.Edit{AddTags: tags}
	}
	return &links.Edit{RemoveTags: tags}
}

// refuses returns why no link can be edited so.
func (d *Dashboard) refuses(c *call, e bulkEdit) (string, error) {
	if len(e.tags) > maxEditTags {
		return fmt.Sprintf("Nothing was changed. Name at most %d tags.", maxEditTags), nil
	}
	_, _, err := d.Shortener.ChangeByID(c.ctx, c.account.ID, nil, e.edit(1<<len(e.tags)-1, false), time.Now())
	p, invalid := problemsOf(err)
	if !invalid {
		return "", err
	}
	text := "Nothing was changed. "
	for _, field := range slices.Sorted(maps.Keys(p)) {
		if field == links.FieldBody {
			p[field] = "Name at least one tag."
		}
		text += p[field]
	}
	return text, nil
}

// editChosen edits links, and offers to undo what it has changed.
func (d *Dashboard) editChosen(c *call, back string, ids []int64, e bulkEdit, done notice) error {
	groups := map[uint][]int64{}
	for some := range slices.Chunk(ids, schema.MaxLinkBatch) {
		found, err := d.DB.LinksByID(c.ctx, c.account.ID, some)
		if err != nil {
			return err
		}
		for _, link := range found {
			groups[e.of(link)] = append(groups[e.of(link)], link.ID)
		}
	}
	same := len(groups[0])
	delete(groups, 0)
	e.at = time.Now().UTC().Truncate(time.Millisecond)
	var changed int
	var refused, failed error
	for _, parts := range slices.Sorted(maps.Keys(groups)) {
		slices.Sort(groups[parts])
		at := e.at.Add(time.Duration(len(e.parts)) * time.Millisecond)
		n, why, err := d.Shortener.ChangeByID(c.ctx, c.account.ID, groups[parts], e.edit(parts, false), at)
		e.parts, changed = append(e.parts, parts), changed+n
		if refused == nil {
			refused = why
		}
		if failed = err; err != nil {
			break
		}
	}
	if failed != nil && changed == 0 {
		return failed
	}
	e.changed = int64(changed)
	done.Text = outcomeOf(changed, len(ids)-same, e.done(), refused, failed)
	if same > 0 {
		done.Text += " " + counted(int64(same), "link needed", "links needed") + " no change."
	}
	if changed > 0 && len(e.parts) <= maxParts {
		done.Undo = e.undo("", back)
	}
	c.setNotice(done)
	return c.redirect(back)
}

// undoEdit gives the links of an edit what they had before, unless they have been changed since.
func (d *Dashboard) undoEdit(c *call, back string, e bulkEdit) error {
	if why, err := d.refuses(c, e); why != "" || err != nil {
		return cmp.Or(err, c.seeOther(back, why))
	}
	now, done, undone := time.Now().UTC().Truncate(time.Millisecond), notice{}, int64(0)
	var failed error
	for i, parts := range e.parts {
		at := e.at.Add(time.Duration(i) * time.Millisecond)
		ids, err := d.DB.LinkIDs(c.ctx, c.account.ID, schema.LinkFilter{ChangedAt: at}, maxChosen)
		if err == nil {
			var n int
			n, _, err = d.Shortener.ChangeByID(c.ctx, c.account.ID, ids, e.edit(parts, true), now)
			undone += int64(n)
		}
		if failed = err; err != nil {
			break
		}
		if e.do != "restore" {
			done.Chosen = append(done.Chosen, ids...)
		}
	}
	if failed != nil && undone == 0 {
		return failed
	}
	if len(done.Chosen) > maxUnasked {
		done.Chosen = nil
	}
	left := max(0, e.changed-undone)
	done.Text = counted(undone, "link is", "links are") + " as before."
	if e.do == "restore" {
		done.Text = counted(undone, "link is", "links are") + " in the trash again."
	}
	switch {
	case failed != nil:
		e.changed = left
		done.Text += " " + counted(left, "link", "links") + " will follow: the service is busy."
		done.Undo = e.undo("Undo the others", back)
	case left > 0:
		done.Text += " " + counted(left, "link has", "links have") + " changed since."
	}
	c.setNotice(done)
	return c.redirect(back)
}

// undo returns the form that undoes the edit.
func (e bulkEdit) undo(label, back string) *undo {
	parts := strings.Trim(fmt.Sprint(e.parts), "[]")
	value := fmt.Sprintf("%s.%d.%d.%s.%s", e.do, e.at.UnixMilli(), e.changed, parts, strings.Join(e.tags, " "))
	return &undo{Label: label, Path: pathLinks + "/chosen", Field: fieldUndone, Value: value, Back: back}
}

// bulkEditOf reads the value that undo writes. Another value is an edit without parts.
func bulkEditOf(text string) (e bulkEdit) {
	fields := strings.Split(text, ".")
	if len(fields) != 5 {
		return e
	}
	e.do, e.at, e.changed = fields[0], time.UnixMilli(parseID(fields[1])).UTC(), parseID(fields[2])
	e.tags = strings.Fields(fields[4])
	if e.done() == "" || len(e.tags) > maxEditTags {
		return bulkEdit{}
	}
	for _, parts := range strings.Fields(fields[3]) {
		if n := parseID(parts); 0 < n && n < 1<<max(1, len(e.tags)) && len(e.parts) < maxParts {
			e.parts = append(e.parts, uint(n))
		}
	}
	return e
}
