import { openDatabase } from '../../../../src/inbox/sqlite/driver.ts'

// A process that copies the file of an inbox while another one uses it.
const [, , path = '', copy = ''] = process.argv
const database = openDatabase(path)
database.exec(`VACUUM INTO '${copy.replaceAll("'", "''")}'`)
database.close()
process.send?.('copied')
process.disconnect?.()
