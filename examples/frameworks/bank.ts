import { setTimeout } from "node:timers/promises";

/** The balances of a bank in which a charge has two steps. Two charges at once would lose one of them. */
export const balances: Record<string, number> = { "7": 100 };

/** Reads the balance, and some time later writes what is left of it. A real bank would get the fence, too. */
export async function charge(account: string, amount: number, fence: string): Promise<string> {
  const balance = balances[account]!;
  await setTimeout(50);
  balances[account] = balance - amount;
  return `${balance - amount} left, under fence ${fence}`;
}
