package dashboard

import (
	"strconv"

	"linkstream/api/links"
	"linkstream/api/request"
)

func (d *Dashboard) routeLinks() {
	d.get(pathLinks, request.Reads, d.listLinks)
	d.post(pathLinks, request.Passwords, d.createLink)
	d.keep(pathLinks, keptFields...)
	d.get(pathNew, request.Constant, d.showNew)
	d.get(Root+"/preview.svg", request.Reads, d.previewQR)
	d.post(pathLinks+"/chosen", request.Writes, d.changeChosen)
	d.routeQR()
	d.post(pathLink+"/active", request.Constant, d.ofLink(d.setActive))
	d.get(pathLink+"/edit", request.Constant, d.ofLink(d.showEdit))
	d.post(pathLink+"/edit", request.Passwords, d.editLink)
	d.routeNames()
	d.keep(pathLink+"/edit", keptFields...)
	d.post(pathLink+"/delete", request.Constant, d.ofLink(d.deleteLink))
}

// setActive switches a link on or off and returns to the page with the form.
func (d *Dashboard) setActive(c *call, link linkView) error {
	active := c.form("active") == "true"
	if _, err := d.Shortener.Edit(c.ctx, link.Link, links.Edit{IsActive: &active}); err != nil {
		return err
	}
	back := c.back(link.Path)
	done := notice{Text: link.Name + " is switched off. Visitors see that it is not active.",
		Undo: &undo{Path: link.Path + "/active", Field: "active", Value: strconv.FormatBool(!active), Back: back}}
	if active {
		done.Text = link.Name + " is switched on."
	}
	c.setNotice(done)
	return c.redirect(link.at(back))
}
