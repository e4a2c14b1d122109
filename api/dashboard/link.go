package dashboard

import (
	"strconv"

	"linkstream/api/shorten"
)

func (d *Dashboard) routeLinks() {
	d.get(pathLinks, d.listLinks)
	d.post(pathLinks, d.createLink)
	d.keep(pathLinks, keptFields...)
	d.get(pathLinks+"/new", d.showNew)
	d.post(pathLinks+"/chosen", d.changeChosen)
	d.routeQR()
	d.post(pathLink+"/active", d.ofLink(d.setActive))
	d.get(pathLink+"/edit", d.ofLink(d.showEdit))
	d.post(pathLink+"/edit", d.editLink)
	d.keep(pathLink+"/edit", keptFields...)
	d.post(pathLink+"/delete", d.ofLink(d.deleteLink))
}

// setActive switches a link on or off and returns to the page with the form.
func (d *Dashboard) setActive(c *call, link linkView) error {
	active := c.form("active") == "true"
	if _, err := d.Shortener.Edit(c.ctx, link.Link, shorten.Edit{IsActive: &active}); err != nil {
		return err
	}
	back := c.back(link.Path)
	done := notice{Text: link.Name + " is switched off. Visitors see that it is not active.",
		Undo: &undo{link.Path + "/active", "active", strconv.FormatBool(!active), back}}
	if active {
		done.Text = link.Name + " is switched on."
	}
	c.setNotice(done)
	return c.redirect(link.at(back))
}
