import { setTimeout } from "node:timers/promises";

/** The balances of a bank. An agent reads one, thinks, and writes what is left: two at once would lose a charge. */
export const balances: Record<string, number> = { "7": 100 };

/** Reads the balance of an account. */
export async function read(account: string): Promise<string> {
  await setTimeout(10);
  return String(balances[account]);
}

/** Writes the balance of an account. A real bank would check the fence. */
export async function write(account: string, balance: number, fence: string): Promise<string> {
  await setTimeout(10);
  balances[account] = balance;
  return `${balance} left, under fence ${fence}`;
}
