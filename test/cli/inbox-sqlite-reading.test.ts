import { sqliteInbox } from '../../src/inbox/sqlite.ts'
import { freshPath } from '../inbox/sqlite/sqlite-tests.ts'
import { checkReadingCommand } from './inbox-reading.suite.ts'

const makePlace = async () => {
  const path = await freshPath()
  return { url: path, flags: [], inbox: () => sqliteInbox({ path }) }
}

checkReadingCommand(makePlace, { handled: true, running: false, stops: false })
