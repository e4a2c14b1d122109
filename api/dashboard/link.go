package dashboard

func (d *Dashboard) routeLinks() { d.get(Root+"/links", d.listLinks) }

func (d *Dashboard) listLinks(c *call) error { return d.render(c, "links", nil) }
