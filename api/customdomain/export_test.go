package customdomain

var (
	ReadServers = readServers
	JudgeTXT    = judgeTXT
)
