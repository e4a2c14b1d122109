package customdomain

var (
	ReadServers = readServers
	MatchTXT    = matchTXT
)
