/** What the hashes of keys with a time begin with. Other hashes sort before it, as those of earlier releases do. */
export const timeMark = '~'
