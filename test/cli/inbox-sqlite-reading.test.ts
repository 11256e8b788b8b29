import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { freshPath } from '../inbox/sqlite/fixture.ts'
import { checkReadingCommand } from './inbox-reading.ts'

const makePlace = async () => {
  const path = await freshPath()
  return { url: path, flags: [], inbox: () => sqliteInbox({ path }) }
}

checkReadingCommand(makePlace, { handled: true, running: false })
