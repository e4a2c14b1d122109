package dashboard

// RequestsPerSecond is what an account may send to dashboards that are made afterwards.
var RequestsPerSecond = &requestsPerSecond
