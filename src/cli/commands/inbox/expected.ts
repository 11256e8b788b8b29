import type { InboxAction } from './action.ts'
import { commandLine } from './command-line.ts'
import { counted, expectedText } from './print.ts'

export const expected: InboxAction = {
  help: ['expected', 'lists the expectations that are open: rule, media item and deadline, soonest first'],
  flags: ['limit'],
  async run({ inbox, target, values: { limit = 100, json }, screen }) {
    const found = await inbox.expected(limit)
    const { expected: total = 0 } = await inbox.stats()
    if (json) {
      screen.json({ expected: found, total })
      return 0
    }
    if (found.length > 0) screen.print(expectedText(found, screen.paint))
    screen.print(`${found.length} of ${counted(total, 'open expectation')}`)
    if (found.length > 0) screen.print(`The events of one: ${commandLine(target, 'media', found[0]?.mediaId ?? '')}`)
    return 0
  },
}
