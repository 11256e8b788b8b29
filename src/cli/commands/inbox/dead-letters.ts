import type { InboxAction } from './action.ts'
import { counted, deadLetterJson, deadLettersText } from './print.ts'
import { named } from './shown.ts'

export const deadLetters: InboxAction = {
  help: ['dead-letters', 'lists dead letters and why they died, unreadable deliveries included, newest first'],
  flags: ['limit', 'offset'],
  async run({ inbox, values: { limit = 100, offset = 0, json }, screen }) {
    const found = await Promise.all((await inbox.deadLetters.list({ limit, offset })).map(named))
    const { deadLetters: total } = await inbox.stats()
    if (json) screen.json({ deadLetters: found.map(deadLetterJson), total })
    else {
      if (found.length > 0) screen.print(deadLettersText(found, screen.paint))
      screen.print(`${found.length} of ${counted(total, 'dead letter')}`)
    }
    return 0
  },
}
