package dashboard

func (d *Dashboard) routeDomains() { d.get(Root+"/domains", d.listDomains) }

func (d *Dashboard) listDomains(c *call) error { return d.render(c, "domains", nil) }
