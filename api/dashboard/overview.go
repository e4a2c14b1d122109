package dashboard

func (d *Dashboard) routeOverview() { d.get(Root, d.showOverview) }

func (d *Dashboard) showOverview(c *call) error { return d.render(c, "overview", nil) }
