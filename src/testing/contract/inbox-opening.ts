import { openInbox } from './handling.ts'
import { type Check, codeOf } from './inbox-check.ts'

export function checkOpening(check: Check): void {
  check('cannot be opened by a second receiver', async ({ definition, expect }) => {
    const openAgain = () => openInbox(definition).inbox.close({ timeoutMs: 0 })
    expect(await codeOf(openAgain)).toBe('invalid_option')
  })

  check('cannot be opened again once it is closed', async ({ inbox, definition, expect }) => {
    await inbox.close()
    const openAgain = () => openInbox(definition).inbox.close({ timeoutMs: 0 })
    expect(await codeOf(openAgain)).toBe('invalid_option')
  })

  check('has handleNow if and only if its definition says so', async ({ inbox, definition, expect }) => {
    expect(inbox.handleNow !== undefined).toBe(definition.handlesNow === true)
  })
}
