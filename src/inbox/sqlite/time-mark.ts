/** The first character of the hash of a key with a time. Other hashes sort before it, as those of earlier releases do. */
export const timeMark = '~'
