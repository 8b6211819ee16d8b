package expr

import "testing"

func TestDescribe(t *testing.T) {
	tests := []struct{ text, want string }{
		{"* * * * *", "every minute"},
		{"* * * * * *", "every second"},
		{"*/5 * * * * *", "every 5 seconds"},
		{"30 * * * * *", "at second 30 of every minute"},
		{"*/10 0 9-17 * * *", "every 10 seconds of minute 0 past 9 to 17"},
		{"*/10 5,7 * * * *", "every 10 seconds of minutes 5 and 7 past every hour"},
		{"*/30 9-17 * * 1-5", "every 30 minutes from 9 to 17:59, Monday to Friday"},
		{"*/30 9,12 * * *", "every 30 minutes in the hours 9 and 12"},
		{"*/10 2 * * *", "every 10 minutes from 2 to 2:59"},
		{"0 * * * *", "every hour"},
		{"5 * * * *", "every hour at minute 5"},
		{"5 */2 * * *", "every 2 hours at minute 5"},
		{"5 9-17 * * *", "every hour from 09:05 to 17:05"},
		{"0,10,45 * * * *", "at minutes 0, 10 and 45 past every hour"},
		{"0,10,45 9-17 * * *", "at minutes 0, 10 and 45 past 9 to 17"},
		{"0 9 * * *", "at 09:00 every day"},
		{"0 9,18 * * FRI-SUN", "at 09:00 and 18:00, Friday to Sunday"},
		{"0 9 * * SAT-MON", "at 09:00, Saturday to Monday"},
		{"0 9 * * 1,3,5", "at 09:00, on Monday, Wednesday and Friday"},
		{"0 9 * * 0,6", "at 09:00, on Saturday and Sunday"},
		{"15 30 9 * * *", "at 09:30:15 every day"},
		{"0 9 1 * *", "at 09:00, on day 1 of the month"},
		{"0 9 1-7,15 * *", "at 09:00, on days 1 to 7 and 15 of the month"},
		{"0 9 13 * FRI", "at 09:00, on day 13 of the month or on Friday"},
		{"0 9 1 6-8 *", "at 09:00, on day 1 of the month, in June to August"},
		{"0 9 L * *", "at 09:00, on the last day of the month"},
		{"0 9 L-2 * *", "at 09:00, on day 3 from the end of the month"},
		{"0 9 LW * *", "at 09:00, on the last weekday (Monday to Friday) of the month"},
		{"0 9 15W * *", "at 09:00, on the weekday (Monday to Friday) nearest to day 15 of the month"},
		{"0 9 * * FRIL", "at 09:00, on the last Friday of the month"},
		{"0 9 * * TUE#2", "at 09:00, on the second Tuesday of the month"},
		{"0 9 * * TUE#5", "at 09:00, on the fifth Tuesday of the month"},
		{"@weekly", "at 00:00, on Sunday"},
		{"@every 90m", "every 1 hour 30 minutes"},
		{"@every 1h", "every hour"},
		{"@every 45s", "every 45 seconds"},
		{"@reboot", "once after each start of the machine"},
		{"at 2026-12-24 18:00", "once, on Thu 24 Dec 2026 at 18:00"},
		{"OnCalendar: Fri *-*-13 18:00", "at 18:00, on Friday if it is day 13 of the month"},
		{"OnCalendar: 2026..2028-01-01", "at 00:00, on day 1 of the month, in January, in 2026, 2027 and 2028"},
		{"OnCalendar: 2030/2-01-01", "at 00:00, on day 1 of the month, in January, every 2 years from 2030"},
		{"OnCalendar: Mon *-05~3,5", "at 00:00, on Monday if it is days 3 and 5 from the end of the month, in May"},
	}
	for _, tt := range tests {
		if got := mustParse(t, tt.text, "Europe/Stockholm").Describe(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestCron(t *testing.T) {
	tests := []struct {
		text, want string
		ok         bool
	}{
		{"*/30 9-17 * * MON-FRI", "*/30 9-17 * * 1-5", true},
		{"0,30 9 * * 7", "0,30 9 * * 0", true},
		{"0 */2 * * *", "0 */2 * * *", true},
		{"0 1/2 * * *", "0 1-23/2 * * *", true},
		{"0 22-2 * * *", "0 0-2,22,23 * * *", true},
		{"0 9 */10 * 5", "0 9 1,11,21,31 * 5", true},
		{"0 9 13 2,3,4 FRI", "0 9 13 2-4 5", true},
		{"@weekly", "0 0 * * 0", true},
		{"@reboot", "@reboot", true},
		{"OnCalendar: Mon..Fri 09:00", "0 9 * * 1-5", true},
		{"OnCalendar: *:0/15", "*/15 * * * *", true},
		{"OnCalendar: *-*-1 4:05", "5 4 1 * *", true},
		{"OnCalendar: quarterly", "0 0 1 1,4,7,10 *", true},
		{"OnCalendar: Fri *-*-13 18:00", "", false},
		{"OnCalendar: 2027-01-01", "", false},
		{"OnCalendar: *:*:30", "", false},
		{"OnCalendar: *-*~1", "", false},
		{"15 30 9 * * *", "", false},
		{"0 9 L * *", "", false},
		{"0 9 15W * *", "", false},
		{"0 9 * * FRI#3", "", false},
		{"@every 1h", "", false},
		{"at 2026-12-24 18:00", "", false},
	}
	for _, tt := range tests {
		got, ok := mustParse(t, tt.text, "UTC").Cron()
		if got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v, want %q, %v", tt.text, got, ok, tt.want, tt.ok)
		}
	}
}
