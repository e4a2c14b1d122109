package dashboard

import (
	"slices"
	"strconv"
	"strings"

	"linkstream/api/links"
	"linkstream/api/request"
	"linkstream/schema"
)

// fieldGiveUp is the field with the former hash that a link gives up.
const fieldGiveUp = "give_up"

func (d *Dashboard) routeNames() {
	d.get(Root+"/alias.txt", request.Reads, d.checkAlias)
	d.post(pathLink+"/rename", request.Reads, d.ofLink(d.renameLink))
}

// aliasOf returns a typed alias in small letters, if these are a custom alias. Edges find it by capitals, too. Any
// other alias keeps its case.
func aliasOf(typed string) string {
	if small := schema.Fold(typed); schema.ValidCustomAlias(small) {
		return small
	}
	return typed
}

// asTyped names the problem of an alias by the field of the form for new links.
func asTyped(p problems) problems {
	if problem, found := p[links.FieldAlias]; found {
		delete(p, links.FieldAlias)
		p[links.FieldCustomAlias] = problem
	}
	return p
}

// checkAlias answers, for the alias that somebody types, what is wrong with it, or nothing. Links of a form that
// renames have their own names.
func (d *Dashboard) checkAlias(c *call) error {
	domainID, _ := strconv.ParseInt(c.query(links.FieldDomainID), 10, 64)
	alias := aliasOf(strings.TrimSpace(cut(c.query(links.FieldAlias), maxAsked)))
	problem, err := d.Shortener.AliasProblem(c.ctx, c.account.ID, alias, domainID, c.query(fieldHash))
	c.http.SetContentType("text/plain; charset=utf-8")
	c.http.SetBodyString(problem)
	return err
}

// fieldHash is the field with the hash of the link that a form renames.
const fieldHash = "hash"

// renameLink gives a link another alias, or takes a former one from it.
func (d *Dashboard) renameLink(c *call, link linkView) error {
	var edit links.Edit
	alias, dropped := c.form(links.FieldAlias), c.form(fieldGiveUp)
	switch {
	case dropped != "":
		kept := slices.DeleteFunc(slices.Clone(link.FormerHashes), func(name string) bool { return name == dropped })
		edit.FormerHashes = &kept
	case alias == link.Hash:
		return c.redirect(link.Path + "/edit")
	default:
		edit.Alias = new(alias)
		if !slices.Contains(link.FormerHashes, alias) {
			edit.Alias = new(aliasOf(alias))
		}
	}
	renamed, err := d.Shortener.Edit(c.ctx, link.Link, edit)
	if p, invalid := linkProblems(err); invalid {
		if problem := p[links.FieldFormerHashes]; problem != "" {
			p[links.FieldAlias] = problem
		}
		return d.invalid(c, "edit", editPage{Link: link, Fields: fieldsOf(link.Link, c.zone()),
			Version: links.Revision(link.Link), Alias: cut(alias, maxAsked)}, p)
	}
	if err != nil {
		return err
	}
	view := d.linkView(renamed)
	if dropped != "" {
		return c.seeOther(view.Path+"/edit", link.Prefix+dropped+" leads nowhere now.")
	}
	return c.seeOther(view.Path+"/edit", link.Name+" is "+view.Name+" now. It goes on leading to the same place.")
}
