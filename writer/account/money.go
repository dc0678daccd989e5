package account

import "fmt"

// Money is an amount in minor units of its currency, such as cents.
type Money int64

// MaxMoney bounds every amount and every balance, up and down. Below it each number is
// exact also for readers of JSON that know floating point only, and no sum of two
// overflows.
const MaxMoney Money = 1<<53 - 1

// plus adds, unless the sum is out of bounds.
func (m Money) plus(n Money) (sum Money, ok bool) {
	sum = m + n
	return sum, -MaxMoney <= sum && sum <= MaxMoney
}

// inBounds reports whether m is not beyond MaxMoney.
func (m Money) inBounds() bool { return -MaxMoney <= m && m <= MaxMoney }

// text shows an amount to people, with so many decimals.
func (m Money) text(decimals int, currency string) string {
	if decimals == 0 {
		return fmt.Sprintf("%d %s", m, currency)
	}
	sign, unit := "", Money(1)
	if m < 0 {
		sign, m = "-", -m
	}
	for range decimals {
		unit *= 10
	}
	return fmt.Sprintf("%s%d.%0*d %s", sign, m/unit, decimals, m%unit, currency)
}
